package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/internal/console/replay"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Problem is how every error is told (RFC 9457). Programs match on the code.
type Problem struct {
	Type   string  `json:"type" doc:"always about:blank: the code tells the kind"`
	Title  string  `json:"title" doc:"the status in words"`
	Status int     `json:"status"`
	Code   string  `json:"code" doc:"the stable name of the error"`
	Detail string  `json:"detail" doc:"what was tried, and why it did not work"`
	Advice string  `json:"advice,omitempty" doc:"what to do"`
	Retry  bool    `json:"retryable,omitempty" doc:"the same request may work later"`
	ID     string  `json:"request_id" doc:"finds the request in the server's log"`
	Fields []Field `json:"fields,omitempty" doc:"the parts of the request that are wrong"`
}

// Field is a part of a request that is wrong.
type Field struct {
	Name    string `json:"name"`
	Problem string `json:"problem"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

const problemType = "application/problem+json"

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return problemType }

// The codes of this package's own errors.
const (
	codeNotFound  sandbox.Code = "route_not_found"
	codeMethod    sandbox.Code = "method_not_allowed"
	codeForbidden sandbox.Code = "forbidden"
	codeCursor    sandbox.Code = "cursor_invalid"
	codeBusy      sandbox.Code = "too_many_streams"
	codeNotKept   sandbox.Code = "history_not_available"
	codeNoMirror  sandbox.Code = "mirror_not_kept"
	codeRange     sandbox.Code = "range_not_satisfiable"
	codePorts     sandbox.Code = "ports_not_available"
	codeConfirm   sandbox.Code = "confirmation_needed"
	codeToldOnce  sandbox.Code = "idempotency_told_once"
)

// codeFault is a fault of ours, of which nothing more is told.
const codeFault = "internal_error"

var errPanic = errors.New("the server met a fault of its own")

// kinds is the one table from codes to statuses and advice. A code that is not
// in it has the status that the wire gives it.
var kinds = map[sandbox.Code]struct {
	status int
	advice string
}{
	codeHost:      {http.StatusForbidden, "use the address that glassbox serve prints, or give the name by --public-url"},
	codeOrigin:    {http.StatusForbidden, "programs use a token and send no Origin header; behind a proxy, give --public-url"},
	codePlain:     {http.StatusForbidden, "use the address of the proxy"},
	codeNotFound:  {http.StatusNotFound, "the routes stand in " + Prefix + "/openapi.json"},
	codeMethod:    {http.StatusMethodNotAllowed, "the routes stand in " + Prefix + "/openapi.json"},
	codeForbidden: {http.StatusForbidden, "ask an admin for the role, or use a token with the scope"},
	codeCursor:    {http.StatusBadRequest, "begin again without a cursor"},
	codeBusy:      {http.StatusServiceUnavailable, "close other pages, or try again later"},
	codeNoMirror:  {http.StatusConflict, "start the server with --mirror"},
	codeRange:     {http.StatusRequestedRangeNotSatisfiable, "ask for a part that the file has"},
	codeConfirm:   {http.StatusUnprocessableEntity, "send the name or the id in confirm"},
	codePorts:     {http.StatusConflict, "open the console on the server's own machine, as http://localhost; ssh -L brings it there from elsewhere"},
	codeNotKept:   {http.StatusConflict, "resume or restart the sandbox to read its history"},

	door.CodeSignIn:        {http.StatusUnauthorized, "glassbox login-link prints a new link"},
	door.CodeSignInNeeded:  {http.StatusUnauthorized, "sign in; glassbox login-link prints a link"},
	door.CodeToken:         {http.StatusUnauthorized, "make a new token"},
	door.CodeTooMany:       {http.StatusTooManyRequests, "wait, or use a sign-in link"},
	door.CodeUserNotFound:  {http.StatusNotFound, ""},
	door.CodeUserExists:    {http.StatusConflict, "choose another name"},
	door.CodeLastAdmin:     {http.StatusConflict, ""},
	door.CodeEntryNotFound: {http.StatusNotFound, ""},
	door.CodeTokenNotFound: {http.StatusNotFound, ""},

	connection.CodeNotFound: {http.StatusNotFound, ""},
	connection.CodeExists:   {http.StatusConflict, "choose another name"},
	connection.CodeDisabled: {http.StatusConflict, ""},
	connection.CodeBuiltIn:  {http.StatusConflict, ""},
	connection.CodeChanged:  {http.StatusPreconditionFailed, "read it again, and repeat the change"},
	connection.CodeAddress:  {http.StatusForbidden, ""},
	connection.CodeSealed:   {http.StatusConflict, ""},

	replay.CodeReused:     {http.StatusUnprocessableEntity, "use a new key for another request"},
	replay.CodeInProgress: {http.StatusConflict, "repeat the request in a moment"},
	replay.CodeLost:       {http.StatusConflict, "look whether it was done, and use a new key"},
	codeToldOnce:          {http.StatusConflict, "delete what was made, and make another one with a new key"},

	mirror.CodeHistoryNotFound: {http.StatusNotFound, ""},
	mirror.CodeSettingsChanged: {http.StatusPreconditionFailed, "read them again, and repeat the change"},

	// What a service behind a connection does not do is no fault of this
	// server, nor of who asks: see docs/decisions.md.
	sandbox.CodeUnavailable:  {http.StatusFailedDependency, "see that the service runs; POST …/connections/{connection}/test tells more"},
	sandbox.CodeProvider:     {http.StatusFailedDependency, "POST …/connections/{connection}/test tells more"},
	sandbox.CodeTimeout:      {http.StatusFailedDependency, "POST …/connections/{connection}/test tells more"},
	sandbox.CodeInterrupted:  {http.StatusFailedDependency, "look whether it was done before it is tried again"},
	sandbox.CodeUnauthorized: {http.StatusFailedDependency, "an admin has to give the connection's key anew"},
	sandbox.CodeUnsupported:  {http.StatusConflict, ""},
	sandbox.CodeInternal:     {http.StatusFailedDependency, "the sandbox or its service met a fault; what it was stands in detail"},
	sandbox.CodeNoSpace:      {http.StatusFailedDependency, "make room in the sandbox"},
	sandbox.CodeCommand:      {http.StatusUnprocessableEntity, ""},
	sandbox.CodeCommandQueue: {http.StatusConflict, "wait until others have ended, or start it in the background"},
	sandbox.CodeLock:         {http.StatusConflict, "wait until others are done with the file"},
	sandbox.CodeModified:     {http.StatusPreconditionFailed, "read it again: another has written meanwhile"},
	sandbox.CodeIsolation:    {http.StatusConflict, "glassbox doctor tells what this machine lacks"},
	sandbox.CodeCancelled:    {499, ""},

	sandbox.CodeHistory:          {http.StatusFailedDependency, "what cannot be recorded is not done; see the disk of the sandbox"},
	sandbox.CodeHistoryLocked:    {http.StatusFailedDependency, "what cannot be recorded is not done; try again"},
	sandbox.CodeHistoryReadOnly:  {http.StatusFailedDependency, "what cannot be recorded is not done; see the disk of the sandbox"},
	sandbox.CodeHistoryCorrupt:   {http.StatusFailedDependency, "what cannot be recorded is not done"},
	sandbox.CodeHistoryVersion:   {http.StatusFailedDependency, "a newer program has written the history"},
	sandbox.CodeHistoryExhausted: {http.StatusFailedDependency, "the history is full: raise its limit, or let it remove old operations"},
}

// problemOf tells an error to a client. What has no code is a fault of ours:
// its text is for the log.
func (s *Server) problemOf(err error, v *visit) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	p := &Problem{Type: "about:blank", ID: v.id}
	list := joined(err)
	e, ok := errors.AsType[*sandbox.Error](err)
	if !ok {
		p.Code = string(sandbox.CodeOf(err))
		if p.Code == string(sandbox.CodeInternal) {
			s.opts.Logger.Error("request failed", "request_id", v.id, "operation", v.operation, "error", err)
			p.Code, p.Detail, p.Advice = codeFault, "the server met a fault of its own", "look for the request id in the server's log"
			p.Status = http.StatusInternalServerError
			p.Title = http.StatusText(p.Status)
			return p
		}
		e = &sandbox.Error{Code: sandbox.Code(p.Code)}
	}
	p.Code, p.Detail, p.Retry = string(e.Code), publicText(e), e.Retryable
	for _, one := range list {
		if one.Field != "" {
			p.Fields = append(p.Fields, Field{one.Field, one.Message})
		}
	}
	kind, known := kinds[e.Code]
	if p.Status, p.Advice = kind.status, kind.advice; !known {
		p.Status = wire.StatusOf(e.Code)
		if p.Status >= http.StatusInternalServerError && e.Sandbox != "" {
			p.Status = http.StatusFailedDependency // of a recorder that knows more than we do
		}
	}
	if p.Title = http.StatusText(p.Status); p.Title == "" {
		p.Title = "Client Closed Request"
	}
	return p
}

// joined lists the errors that came together.
func joined(err error) (list []*sandbox.Error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		if _, one := err.(*sandbox.Error); !one { //nolint:errorlint // as above
			for _, e := range many.Unwrap() {
				list = append(list, joined(e)...)
			}
			return list
		}
	}
	if e, ok := errors.AsType[*sandbox.Error](err); ok {
		return []*sandbox.Error{e}
	}
	return nil
}

// publicText is an error's text, but for causes that no caller can do anything
// about.
func publicText(e *sandbox.Error) string {
	text := e.Error()
	if _, ok := errors.AsType[*door.TooMany](e.Err); ok || e.Err == nil {
		return text
	}
	if shown := strings.TrimSuffix(text, ": "+e.Err.Error()); e.Message != "" && shown != "" {
		return shown
	}
	return text
}

// fail notes an error in the visit and returns it as it is told.
func (s *Server) fail(v *visit, err error) *Problem {
	p := s.problemOf(err, v)
	v.code, v.problem = p.Code, p.Detail
	return p
}

// refuse answers with an error outside of the API's own ways.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := s.fail(visitOf(r.Context()), err)
	retryAfter(w.Header().Set, err)
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have gone
}

func retryAfter(set func(name, value string), err error) {
	if t, ok := errors.AsType[*door.TooMany](err); ok {
		set("Retry-After", strconv.Itoa(int(t.After/time.Second)+1))
	}
}

// problems turns what the framework says of a request that it cannot read into
// a Problem. It leaves out what was sent: that may hold a password.
func (s *Server) problems(ctx huma.Context, _ string, body any) (any, error) {
	v := visitOf(ctx.Context())
	switch e := body.(type) {
	case *Problem:
		v.code, v.problem = e.Code, e.Detail
	case *huma.ErrorModel:
		p := &Problem{
			Type: "about:blank", Title: http.StatusText(e.Status), Status: e.Status, Code: string(sandbox.CodeInvalid), Detail: e.Detail, ID: v.id,
			Advice: "see " + Prefix + "/openapi.json for what this route takes",
		}
		if e.Status >= http.StatusInternalServerError {
			s.opts.Logger.Error("request failed", "request_id", v.id, "operation", v.operation, "error", e.Detail)
			p.Code, p.Detail, p.Advice = codeFault, "the server met a fault of its own", "look for the request id in the server's log"
		}
		for _, d := range e.Errors {
			if d != nil {
				p.Fields = append(p.Fields, Field{d.Location, d.Message})
			}
		}
		v.code, v.problem = p.Code, p.Detail
		return p, nil
	}
	return body, nil
}

func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	s.refuse(w, r, &sandbox.Error{Code: codeNotFound, Message: "there is nothing at this path"})
}

func (s *Server) wrongMethod(w http.ResponseWriter, r *http.Request) {
	s.refuse(w, r, &sandbox.Error{Code: codeMethod, Message: "this path does not take " + r.Method})
}
