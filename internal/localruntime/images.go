package localruntime

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/glassboxhq/glassbox/internal/localruntime/image"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// ImageEvent is one line of what is answered to a pull: how far it is, and in
// the end the image, or what went wrong.
type ImageEvent struct {
	*image.Status
	Image *image.Image    `json:"image,omitempty"`
	Fault json.RawMessage `json:"fault,omitempty"` // as wire.DecodeFault reads it
}

// serveImages lets other processes of this user work with the images.
func (rt *Runtime) serveImages(mux *http.ServeMux) {
	const at = owner.PathImages
	mux.HandleFunc("GET "+at, answer(func(r *http.Request) (any, error) { return rt.images.List(r.Context()) }))
	mux.HandleFunc("POST "+at+"/remove", answer(func(r *http.Request) (any, error) {
		gone, err := rt.images.Remove(r.Context(), r.URL.Query().Get("name"))
		return gone, imageFault("remove image", r.URL.Query().Get("name"), err)
	}))
	mux.HandleFunc("POST "+at+"/prune", answer(func(r *http.Request) (any, error) { return rt.images.Prune(r.Context()) }))
	mux.HandleFunc("POST "+at+"/load", answer(func(r *http.Request) (any, error) {
		list, err := rt.images.Load(r.Context(), r.Body, r.URL.Query().Get("name"))
		return list, imageFault("load images", "", err)
	}))
	mux.HandleFunc("POST "+at+"/pull", rt.servePull)
}

func answer(do func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		result, err := do(r)
		if err != nil {
			wire.WriteError(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(result) // the client may have gone
	}
}

// servePull pulls an image for as long as the client listens. With missing, it
// is pulled only if a sandbox could not begin from that name otherwise.
func (rt *Runtime) servePull(w http.ResponseWriter, r *http.Request) {
	name, missing := r.URL.Query().Get("name"), r.URL.Query().Has("missing")
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines, flush := json.NewEncoder(w), http.NewResponseController(w).Flush
	tell := func(e *ImageEvent) {
		_ = lines.Encode(e) // who has gone is noticed by the context
		_ = flush()
	}
	img, err := rt.pullFor(r.Context(), name, missing, func(st image.Status) { tell(&ImageEvent{Status: &st}) })
	if err != nil {
		tell(&ImageEvent{Fault: wire.EncodeFault(err)})
		return
	}
	tell(&ImageEvent{Image: img})
}

func (rt *Runtime) pullFor(ctx context.Context, name string, missing bool, see func(image.Status)) (*image.Image, error) {
	if name == ImageHost || name == ImageHere {
		if missing {
			return nil, nil
		}
		return nil, sandbox.Invalid("image", name+" is this machine; there is nothing to pull")
	}
	if missing {
		from, err := rt.choose(ctx, name)
		if err != nil || from.pull == "" {
			return nil, err
		}
	}
	img, err := rt.images.Pull(ctx, name, see)
	if err != nil && missing {
		return nil, noImage(name, err)
	}
	return img, imageFault("pull image", "", err)
}

// imageFault says what kind of error one of the store is.
func imageFault(op, name string, err error) error {
	if _, known := errors.AsType[*sandbox.Error](err); known || err == nil {
		return err
	}
	fault := &sandbox.Error{Op: op, Code: sandbox.CodeImageNotFound, Err: err}
	switch {
	case errors.Is(err, image.ErrAbsent):
		fault.Message = "there is no image " + strconv.Quote(clip(name)) + "; glassbox image list shows what there is"
		fault.Err = nil
	case errors.Is(err, image.ErrHostile), errors.Is(err, io.ErrUnexpectedEOF), op == "load images":
		fault.Code = sandbox.CodeInvalid
	}
	return fault
}
