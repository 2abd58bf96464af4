package opensandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/version"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

const providerName = "opensandbox"

// call is one request to the service.
type call struct {
	op      string
	method  string
	path    string
	query   url.Values
	body    any
	sandbox string
	repeat  bool     // safe to be sent again
	newer   bool     // not every service has it
	makes   bool     // a lost answer may have left a sandbox; no limit but ctx
	secrets []string // in the body, to be kept out of errors
}

// Tries of what is safe to repeat, the pauses between, and how long after the
// first one the last may begin.
const (
	tryWithin = 30 * time.Second
	maxTries  = 3
	minPause  = 100 * time.Millisecond
	maxPause  = 2 * time.Second
)

// do sends a call, and again where that is safe and may help.
func (p *Provider) do(ctx context.Context, c *call, to any) error {
	for try, began := 0, time.Now(); ; try++ {
		err := p.once(ctx, c, to)
		if try > 0 && c.method == http.MethodDelete && errors.Is(err, sandbox.ErrNotFound) {
			return nil // the try before has deleted it, though its answer was lost
		}
		e, ok := errors.AsType[*sandbox.Error](err)
		if err == nil || !c.repeat || !ok || !e.Retryable || try+1 == maxTries {
			return err
		}
		pause := min(minPause<<try, maxPause)
		pause += time.Duration((rand.Float64()*0.4 - 0.2) * float64(pause))
		if time.Since(began)+pause > tryWithin {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

const maxAnswer = 16 << 20

func (p *Provider) once(ctx context.Context, c *call, to any) error {
	sent := false
	limited, cancel := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }}), context.CancelFunc(func() {})
	if !c.makes {
		limited, cancel = context.WithTimeout(limited, p.opts.RequestTimeout)
	}
	defer cancel()
	req, err := p.request(limited, c)
	if err != nil {
		return p.fault(c, err)
	}
	began := time.Now()
	resp, doErr := p.client.Do(req)
	var text []byte
	if doErr == nil {
		p.clock.see(resp.Header, began)
		defer resp.Body.Close()
		text, doErr = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	}
	switch {
	case doErr != nil && c.makes && sent:
		return p.fault(c, unknown(p.unreachable(ctx, doErr)))
	case doErr != nil:
		return p.fault(c, p.unreachable(ctx, doErr))
	case resp.StatusCode/100 != 2:
		return p.fault(c, refusal(c, resp, text))
	case to == nil:
		return nil
	}
	if err := json.Unmarshal(text, to); err != nil {
		return p.fault(c, &sandbox.Error{Code: sandbox.CodeProvider, Message: "the answer is not one of an OpenSandbox service; is the URL right?"})
	}
	return nil
}

func (p *Provider) request(ctx context.Context, c *call) (*http.Request, *sandbox.Error) {
	var body io.Reader
	if c.body != nil {
		text, err := json.Marshal(c.body)
		if err != nil {
			return nil, &sandbox.Error{Code: sandbox.CodeInvalid, Err: err}
		}
		body = bytes.NewReader(text)
	}
	target := *p.base
	target.Path, target.RawQuery = "/v1"+c.path, c.query.Encode()
	req, err := http.NewRequestWithContext(ctx, c.method, target.String(), body)
	if err != nil {
		return nil, sandbox.Invalid("url", "is not one that a request can be sent to")
	}
	if opID := wire.RecordedFrom(ctx); opID != "" {
		wire.SetActor(req.Header, history.ActorFrom(ctx))
		req.Header.Set(wire.HeaderRecorded, opID)
	}
	req.Header.Set("User-Agent", "glassbox/"+version.String())
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if p.opts.Key != "" {
		req.Header.Set("OPEN-SANDBOX-API-KEY", string(p.opts.Key))
	}
	return req, nil
}

// unknown is a create whose answer was lost: the same call again might make a
// second sandbox.
func unknown(e *sandbox.Error) *sandbox.Error {
	const advice = "a sandbox may have been made; look at the list before you try again"
	if e.Code == sandbox.CodeUnavailable || e.Code == sandbox.CodeProvider {
		e.Code, e.Message = sandbox.CodeInterrupted, "the answer was lost"
	}
	e.Retryable, e.Message = false, strings.TrimPrefix(e.Message+"; "+advice, "; ")
	return e
}

// unreachable tells why no answer came. The text of the cause must not hold
// the URL.
func (p *Provider) unreachable(ctx context.Context, err error) *sandbox.Error {
	if ctx.Err() != nil {
		return sandbox.FromContext(ctx, "")
	}
	timeout := false
	if u, ok := errors.AsType[*url.Error](err); ok {
		err, timeout = u.Err, u.Timeout()
	}
	if timeout {
		return &sandbox.Error{Code: sandbox.CodeTimeout, Retryable: true, Message: "no answer from " + p.base.Host + " within " + p.opts.RequestTimeout.String()}
	}
	return &sandbox.Error{
		Code: sandbox.CodeUnavailable, Retryable: true, Err: err,
		Message: "no OpenSandbox service answers at " + p.base.Host + "; start one with glassbox serve, or give another URL",
	}
}

func (p *Provider) fault(c *call, e *sandbox.Error) error {
	e.Op, e.Provider = c.op, providerName
	if e.Sandbox == "" {
		e.Sandbox = c.sandbox
	}
	// Services quote what they refuse.
	for _, secret := range append(c.secrets, string(p.opts.Key)) {
		if len(secret) >= minSecret {
			e.Message = strings.ReplaceAll(e.Message, secret, "***")
		}
	}
	return e
}

// minSecret is the shortest value that is looked for in what a service says;
// shorter ones stand in too many words.
const minSecret = 4

// maxMessage bounds what of a service's message is told.
const maxMessage = 4 << 10

// refusal reads an error of the service, in any of the shapes it has.
func refusal(c *call, resp *http.Response, text []byte) *sandbox.Error {
	var body struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Detail  any    `json:"detail"`
	}
	_ = json.Unmarshal(text, &body) // a proxy on the way may answer with a page
	e := &sandbox.Error{
		Message: body.Message, ProviderCode: body.Code, RequestID: resp.Header.Get("X-Request-ID"),
		Code: sandbox.Code(resp.Header.Get(wire.HeaderCode)),
	}
	if e.Code == "" {
		e.Code = codeOf(resp.StatusCode, body.Code)
	} else {
		e.ProviderCode = "" // it is our own local runtime, which has told ours
	}
	if e.Message == "" {
		e.Message = detailOf(body.Detail)
	}
	if e.Message == "" {
		e.Message = "the service answered " + resp.Status
	}
	if len(e.Message) > maxMessage {
		e.Message = strings.ToValidUTF8(e.Message[:maxMessage], "") + "…"
	}
	if body.Code == "" {
		noRoute(c, resp.StatusCode, e)
	}
	if e.Code == sandbox.CodeUnauthorized {
		e.Message += "; give the API key by GLASSBOX_API_KEY, OPEN_SANDBOX_API_KEY or an option"
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.Retryable = true
	}
	// A proxy gave up on the service, which may go on.
	if c.makes && body.Code == "" && (resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusGatewayTimeout) {
		return unknown(e)
	}
	return e
}

// noRoute tells of what no code of the service is responsible for.
func noRoute(c *call, status int, e *sandbox.Error) {
	missing := status == http.StatusNotFound || status == http.StatusMethodNotAllowed
	switch {
	case missing && c.newer:
		e.Code, e.Message = sandbox.CodeUnsupported, "this service does not offer it"
	case status == http.StatusNotFound && c.sandbox == "" && e.Code == sandbox.CodeSandboxNotFound:
		e.Code = sandbox.CodeProvider
		e.Message += "; it has no such route: is the URL right?"
	}
}

// detailOf reads a validation error's messages and places, and leaves out the
// input, which may hold secrets.
func detailOf(detail any) string {
	list, ok := detail.([]any)
	if !ok {
		text, _ := detail.(string)
		return text
	}
	var parts []string
	for _, item := range list {
		fields, _ := item.(map[string]any)
		message, _ := fields["msg"].(string)
		var place []string
		if loc, ok := fields["loc"].([]any); ok {
			for _, part := range loc {
				if name, ok := part.(string); ok && name != "body" {
					place = append(place, name)
				}
			}
		}
		parts = append(parts, strings.TrimPrefix(strings.Join(place, ".")+": "+message, ": "))
	}
	return strings.Join(parts, "; ")
}

// codeOf gives a service's refusal one of our codes.
func codeOf(status int, theirs string) sandbox.Code {
	switch {
	case strings.HasSuffix(theirs, "IMAGE_PULL_FAILED"):
		return sandbox.CodeImageNotFound
	case strings.HasPrefix(theirs, "SNAPSHOT::") && status == http.StatusNotFound:
		return sandbox.CodeSnapshotNotFound
	case strings.HasPrefix(theirs, "SNAPSHOT::") && status == http.StatusConflict && theirs != "SNAPSHOT::INVALID_SOURCE_STATE":
		return sandbox.CodeSnapshotState
	case strings.HasSuffix(theirs, "SANDBOX_NOT_FOUND"), status == http.StatusNotFound:
		return sandbox.CodeSandboxNotFound
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return sandbox.CodeUnauthorized
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		return sandbox.CodeInvalid
	case status == http.StatusConflict:
		return sandbox.CodeSandboxState
	case status == http.StatusNotImplemented:
		return sandbox.CodeUnsupported
	}
	return sandbox.CodeProvider
}
