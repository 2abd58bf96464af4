package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/glassboxhq/glassbox/internal/console/replay"
	"github.com/glassboxhq/glassbox/sandbox"
)

// once are the operations that a client may repeat with an Idempotency-Key,
// and whether their answers may be kept: a secret is told once.
var once = map[string]bool{
	"create-sandbox": true, "create-connection": true, "create-user": true,
	"start-command": true, "open-terminal": true, "take-snapshot": true,
	"create-token": false, "create-user-link": false,
}

const keyHeader = "Idempotency-Key"

func onceParameter() *huma.Param {
	return &huma.Param{
		Name: keyHeader, In: "header", Schema: &huma.Schema{Type: huma.TypeString},
		Description: "a name for this very request, such as a UUID: within a day the same request with the same key is done once and answered the same",
	}
}

// limits of a request with a key: it goes on when its client has gone, who
// comes back for the answer.
const (
	onceTime     = 5 * time.Minute
	onceReadTime = 30 * time.Second
)

// doOnce lets a request through, unless it came before.
func (s *Server) doOnce(ctx huma.Context, v *visit, next func(huma.Context)) {
	keep, may := once[v.operation]
	r, w := humachi.Unwrap(ctx)
	key := r.Header.Get(keyHeader)
	if !may || key == "" {
		next(ctx)
		return
	}
	request, reply, err := s.beginOnce(w, r, v)
	switch {
	case err != nil:
		s.refuse(w, r, err)
		return
	case reply != nil:
		v.replayed = true
		s.repeat(w, r, reply)
		return
	}
	working, cancel := context.WithTimeout(context.WithoutCancel(ctx.Context()), onceTime)
	defer cancel()
	v.answer.copy = &bytes.Buffer{}
	defer s.endOnce(working, v, request, keep)
	next(huma.WithContext(ctx, working))
}

// beginOnce reads the request, to know it again.
func (s *Server) beginOnce(w http.ResponseWriter, r *http.Request, v *visit) (*replay.Request, *replay.Reply, error) {
	key := r.Header.Get(keyHeader)
	if err := replay.ValidateKey(key); err != nil {
		return nil, nil, err
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(onceReadTime)) // a recorder of a test has none
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, nil, &sandbox.Error{Op: "read request", Code: sandbox.CodeInvalid, Message: "its body did not come whole"}
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	request := &replay.Request{User: v.visitor.User.ID, Operation: v.operation, Key: key, Fingerprint: replay.Fingerprint(r.URL.Path, body)}
	reply, err := s.replies.Begin(r.Context(), request)
	return request, reply, err
}

// repeat answers as before.
func (s *Server) repeat(w http.ResponseWriter, r *http.Request, reply *replay.Reply) {
	if len(reply.Body) == 0 {
		s.refuse(w, r, &sandbox.Error{Op: "repeat request", Code: codeToldOnce, Message: "it was done, and its answer held a secret, which is told once"})
		return
	}
	for name, value := range reply.Header {
		w.Header().Set(name, value)
	}
	w.Header().Set("Idempotency-Replayed", "true")
	w.WriteHeader(reply.Status)
	_, _ = w.Write(reply.Body) // the client may have gone
}

// uncertain are errors after which it may have been done.
var uncertain = []sandbox.Code{sandbox.CodeTimeout, sandbox.CodeInterrupted, sandbox.CodeCancelled, codeFault}

// endOnce keeps the answer. What was refused or failed for sure may be tried
// again with the same key.
func (s *Server) endOnce(ctx context.Context, v *visit, request *replay.Request, keep bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if v.answer.status == 0 {
		return // it panicked: nobody knows
	}
	done := v.answer.status/100 == 2
	var err error
	if done || slices.Contains(uncertain, sandbox.Code(v.code)) {
		reply := &replay.Reply{Status: v.answer.status, Header: map[string]string{}}
		if keep || !done {
			reply.Body = v.answer.copy.Bytes()
		}
		for _, name := range []string{"Content-Type", "ETag"} {
			if value := v.answer.Header().Get(name); value != "" {
				reply.Header[name] = value
			}
		}
		err = s.replies.Finish(ctx, request, reply)
	} else {
		err = s.replies.Release(ctx, request)
	}
	if err != nil {
		s.opts.Logger.ErrorContext(ctx, "answer is not kept for who repeats the request", "operation", v.operation, "request_id", v.id, "error", err)
	}
}
