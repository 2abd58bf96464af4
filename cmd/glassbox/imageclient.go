package main

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/localruntime/image"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// imageClient works with the images of whoever owns the state folder.
type imageClient struct {
	app    *app
	client *http.Client
}

func (a *app) images(ctx context.Context) (*imageClient, error) {
	url, err := a.service(ctx)
	if err != nil {
		return nil, err
	}
	if url != glassbox.Local {
		return nil, usage("the images of a service are its own; leave the url out (it comes from %s)", a.settings.values["url"].origin)
	}
	return a.localImages(), nil
}

// localImages is for who has found the owner already.
func (a *app) localImages() *imageClient {
	return &imageClient{a, &http.Client{Transport: owner.Transport(a.settings.stateDir)}}
}

// ask sends a request, and hands back an answer that is none of a fault.
func (c *imageClient) ask(ctx context.Context, route string, query url.Values, body io.Reader) (io.ReadCloser, error) {
	method := http.MethodPost
	if route == "" { // the list
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+owner.PathImages+route+"?"+query.Encode(), body)
	if err != nil {
		return nil, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, sandbox.FromContext(ctx, "work with images")
		}
		return nil, &sandbox.Error{Op: "work with images", Code: sandbox.CodeUnavailable, Err: err}
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && !json.Valid(text) {
		err = errors.New("the server of this machine's sandboxes answers " + resp.Status + "; it may be of a version that has no images")
	}
	if err != nil {
		return nil, &sandbox.Error{Op: "work with images", Code: sandbox.CodeUnavailable, Err: err}
	}
	return nil, wire.DecodeFault(resp.StatusCode, text)
}

func (c *imageClient) call(ctx context.Context, route string, query url.Values, body io.Reader, into any) error {
	answer, err := c.ask(ctx, route, query, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	return json.NewDecoder(answer).Decode(into)
}

func named(name string) url.Values { return url.Values{"name": {name}} }

func (c *imageClient) list(ctx context.Context) (list []*image.Image, err error) {
	err = c.call(ctx, "", nil, nil, &list)
	return list, err
}

func (c *imageClient) remove(ctx context.Context, name string) (*image.Removed, error) {
	gone := &image.Removed{}
	return gone, c.call(ctx, "/remove", named(name), nil, gone)
}

func (c *imageClient) prune(ctx context.Context) (*image.Removed, error) {
	gone := &image.Removed{}
	done := c.app.progress("removing images")
	defer done()
	return gone, c.call(ctx, "/prune", nil, nil, gone)
}

func (c *imageClient) load(ctx context.Context, archive io.Reader, name string) (list []*image.Image, err error) {
	done := c.app.progress("loading images")
	defer done()
	err = c.call(ctx, "/load", named(name), archive, &list)
	return list, err
}

// pull fetches an image; with missing only if no sandbox can begin from that
// name yet, and nil may be the answer.
func (c *imageClient) pull(ctx context.Context, name string, missing bool) (*image.Image, error) {
	query := named(name)
	if missing {
		query.Set("missing", "yes")
	}
	answer, err := c.ask(ctx, "/pull", query, nil)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	shown, done := c.app.changing()
	defer done()
	for lines := json.NewDecoder(answer); ; {
		var e localruntime.ImageEvent
		switch err := lines.Decode(&e); {
		case ctx.Err() != nil:
			return nil, sandbox.FromContext(ctx, "pull image")
		case err != nil:
			return nil, &sandbox.Error{Op: "pull image", Code: sandbox.CodeUnavailable, Message: "the server of this machine's sandboxes has ended; try again", Err: err}
		case len(e.Fault) > 0:
			return nil, wire.DecodeFault(0, e.Fault)
		case e.Status == nil:
			return e.Image, nil
		}
		text := "pulling " + name + ": " + e.String()
		shown.Store(&text)
	}
}

// tarFolder reads a folder as a tar.
func tarFolder(dir string) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		archive := tar.NewWriter(w)
		w.CloseWithError(errors.Join(archive.AddFS(os.DirFS(dir)), archive.Close()))
	}()
	return r
}
