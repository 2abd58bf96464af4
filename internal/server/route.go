package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/glassboxhq/glassbox/internal/console/act"
	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/sandbox"
)

// access is what a route needs, and how the act is called that it is. An empty
// role: everybody may. An empty act: it is not recorded.
type access struct {
	role  door.Role
	scope door.Scope
	act   string
}

// accesses is the one table of what each route needs.
var accesses = map[string]access{
	"sign-in-by-link":     {act: "auth.sign_in"},
	"sign-in-by-password": {act: "auth.sign_in"},
	"sign-out":            {door.Viewer, door.Account, "auth.sign_out"},
	"get-me":              {door.Viewer, door.Any, ""},
	"change-own-password": {door.Viewer, door.Account, "auth.password"},
	"list-sign-ins":       {door.Viewer, door.Account, ""},
	"end-sign-in":         {door.Viewer, door.Account, "auth.end_sign_in"},
	"list-tokens":         {door.Viewer, door.Account, ""},
	"create-token":        {door.Viewer, door.Account, "token.create"},
	"delete-token":        {door.Viewer, door.Account, "token.delete"},

	"list-users":       {door.Admin, door.Administer, ""},
	"create-user":      {door.Admin, door.Administer, "user.create"},
	"get-user":         {door.Admin, door.Administer, ""},
	"update-user":      {door.Admin, door.Administer, "user.update"},
	"delete-user":      {door.Admin, door.Administer, "user.delete"},
	"create-user-link": {door.Admin, door.Administer, "user.link"},
	"list-acts":        {door.Admin, door.Administer, ""},
	"rotate-keys":      {door.Admin, door.Administer, "keys.rotate"},

	"list-connections":  {door.Viewer, door.ConnectionsRead, ""},
	"get-connection":    {door.Viewer, door.ConnectionsRead, ""},
	"create-connection": {door.Admin, door.ConnectionsWrite, "connection.create"},
	"update-connection": {door.Admin, door.ConnectionsWrite, "connection.update"},
	"delete-connection": {door.Admin, door.ConnectionsWrite, "connection.delete"},
	"test-connection":   {door.Operator, door.ConnectionsRead, "connection.test"},

	"list-sandboxes": {door.Viewer, door.SandboxesRead, ""},
	"get-sandbox":    {door.Viewer, door.SandboxesRead, ""},
	"create-sandbox": {door.Operator, door.SandboxesWrite, "sandbox.create"},
	"delete-sandbox": {door.Operator, door.SandboxesWrite, "sandbox.delete"},
	"pause-sandbox":  {door.Operator, door.SandboxesWrite, "sandbox.pause"},
	"resume-sandbox": {door.Operator, door.SandboxesWrite, "sandbox.resume"},
	"renew-sandbox":  {door.Operator, door.SandboxesWrite, "sandbox.renew"},

	"list-operations":      {door.Viewer, door.HistoryRead, ""},
	"get-operation":        {door.Viewer, door.HistoryRead, "history.read"},
	"search-operations":    {door.Viewer, door.HistoryRead, "history.search"},
	"summarize-sandbox":    {door.Viewer, door.HistoryRead, ""},
	"summarize-operations": {door.Viewer, door.HistoryRead, ""},
	"get-output":           {door.Viewer, door.HistoryRead, "history.read_output"},
	"follow-operations":    {door.Viewer, door.HistoryRead, ""},
	"follow-all":           {door.Viewer, door.HistoryRead, ""},

	// What is in a sandbox may be secret: who only looks does not see it.
	"list-files":     {door.Operator, door.SandboxesWrite, "file.list"},
	"stat-file":      {door.Operator, door.SandboxesWrite, "file.stat"},
	"read-file":      {door.Operator, door.SandboxesWrite, "file.read"},
	"write-file":     {door.Operator, door.SandboxesWrite, "file.write"},
	"make-directory": {door.Operator, door.SandboxesWrite, "file.mkdir"},
	"move-file":      {door.Operator, door.SandboxesWrite, "file.move"},
	"copy-file":      {door.Operator, door.SandboxesWrite, "file.copy"},
	"file-usage":     {door.Operator, door.SandboxesWrite, "file.usage"},
	"set-mode":       {door.Operator, door.SandboxesWrite, "file.chmod"},
	"delete-file":    {door.Operator, door.SandboxesWrite, "file.delete"},
	"download-tree":  {door.Operator, door.SandboxesWrite, "file.download"},
	"upload-tree":    {door.Operator, door.SandboxesWrite, "file.upload"},
	"search-files":   {door.Operator, door.SandboxesWrite, "file.search"},

	"list-commands":  {door.Viewer, door.HistoryRead, ""},
	"start-command":  {door.Operator, door.SandboxesWrite, "command.execute"},
	"follow-command": {door.Operator, door.SandboxesWrite, "command.follow"},
	"feed-command":   {door.Operator, door.SandboxesWrite, "command.input"},
	"signal-command": {door.Operator, door.SandboxesWrite, "command.signal"},
	"stop-command":   {door.Operator, door.SandboxesWrite, "command.stop"},

	"list-terminals": {door.Viewer, door.HistoryRead, ""},
	"open-terminal":  {door.Operator, door.SandboxesWrite, "terminal.open"},
	"use-terminal":   {door.Operator, door.SandboxesWrite, "terminal.use"},
	"close-terminal": {door.Operator, door.SandboxesWrite, "terminal.close"},

	"get-mirror-settings": {door.Admin, door.Administer, ""},
	"set-mirror-settings": {door.Admin, door.Administer, "mirror.settings"},
	"erase-history":       {door.Admin, door.Administer, "history.erase"},

	"open-port": {door.Operator, door.SandboxesWrite, "port.open"},

	"list-snapshots":  {door.Viewer, door.SandboxesRead, ""},
	"get-snapshot":    {door.Viewer, door.SandboxesRead, ""},
	"take-snapshot":   {door.Operator, door.SandboxesWrite, "snapshot.create"},
	"delete-snapshot": {door.Operator, door.SandboxesWrite, "snapshot.delete"},

	// Beside the API's own.
	"metrics": {door.Admin, door.Administer, ""},
	"openapi": {door.Viewer, door.Any, ""},
	"docs":    {door.Viewer, door.Any, ""},
}

// route serves an operation of the API. Its path is below Prefix.
func route[I, O any](s *Server, op huma.Operation, serve func(ctx context.Context, v *visit, in *I) (*O, error)) {
	need, known := accesses[op.OperationID]
	if !known {
		panic("route " + op.OperationID + " is not in the table of accesses")
	}
	op.Path = Prefix + op.Path
	if op.MaxBodyBytes == 0 {
		op.MaxBodyBytes = maxBody
	}
	if need.role != "" {
		op.Security = []map[string][]string{{"token": {}}, {"session": {}}}
		op.Extensions = map[string]any{"x-role": need.role, "x-scope": need.scope}
	}
	if _, may := once[op.OperationID]; may {
		op.Parameters = append(op.Parameters, onceParameter())
	}
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	op.Responses["default"] = &huma.Response{
		Description: "An error",
		Content:     map[string]*huma.MediaType{problemType: {Schema: huma.SchemaFromType(s.api.OpenAPI().Components.Schemas, problemGoType)}},
	}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		v := visitOf(ctx)
		out, err := serve(ctx, v, in)
		if err == nil {
			return out, nil
		}
		header := http.Header{}
		retryAfter(header.Set, err)
		return nil, huma.ErrorWithHeaders(s.fail(v, err), header)
	})
}

// enter lets a request of the API in, and records what is an act.
func (s *Server) enter(ctx huma.Context, next func(huma.Context)) {
	v := visitOf(ctx.Context())
	v.operation = ctx.Operation().OperationID
	need := accesses[v.operation]
	r, w := humachi.Unwrap(ctx)
	v.target = target(ctx)
	if box := ctx.Param("sandbox"); box != "" {
		v.sandbox = clip(timelineOf(ctx.Param("connection"), box))
	}
	if err := s.admit(r, v, need); err != nil {
		s.refuse(w, r, err)
		if v.visitor != nil {
			s.record(r.Context(), v, need)
		}
		return
	}
	ended := false
	defer func() {
		if !ended && v.code == "" {
			v.code = codeFault
		}
		if need.act != "" && !v.recorded && !v.replayed {
			s.record(r.Context(), v, need)
		}
	}()
	s.doOnce(ctx, v, next)
	ended = true
}

// target is what a request is about, by its path.
func target(ctx huma.Context) string {
	var parts []string
	for _, name := range []string{"connection", "sandbox", "operation", "port", "user", "token", "sign_in"} {
		if value := ctx.Param(name); value != "" {
			parts = append(parts, value)
		}
	}
	return clip(strings.Join(parts, "/"))
}

const maxText = 512

// clip bounds what a client sent before it is kept, and leaves out what no
// database takes.
func clip(text string) string {
	text = text[:min(len(text), maxText)]
	return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
}

// admit finds out who comes, and whether that may.
func (s *Server) admit(r *http.Request, v *visit, need access) error {
	if need.role == "" {
		return nil
	}
	var err error
	if v.visitor, err = s.visitor(r); err != nil {
		return err
	}
	if v.visitor.Via != door.ViaToken && !safe(r.Method) && !s.fromOwnPage(r, v) {
		return &sandbox.Error{Code: codeOrigin, Message: "a browser's request must tell that it comes from this server's own page"}
	}
	if !v.visitor.May(need.role, need.scope) {
		return forbidden(v, need)
	}
	return nil
}

func forbidden(v *visit, need access) error {
	what := "this needs the role " + string(need.role)
	if v.visitor.User.Role.Includes(need.role) {
		what = "this token has not the scope " + string(need.scope)
		if need.scope == door.Account {
			what = "no token may do this: sign in with a browser"
		}
	}
	return &sandbox.Error{Code: codeForbidden, Message: what}
}

// visitor finds out who comes: by a token if there is one, else by the cookie.
func (s *Server) visitor(r *http.Request) (*door.Visitor, error) {
	if given := r.Header.Get("Authorization"); given != "" {
		scheme, secret, _ := strings.Cut(given, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			secret = "" // is none
		}
		return s.opts.Door.ByToken(r.Context(), door.Secret(strings.TrimSpace(secret)))
	}
	cookie, err := r.Cookie(s.cookieName())
	if err != nil {
		return s.opts.Door.BySession(r.Context(), "")
	}
	return s.opts.Door.BySession(r.Context(), door.Secret(cookie.Value))
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// fromOwnPage reports whether a browser says that our own page sent a request.
// A foreign one was refused before.
func (s *Server) fromOwnPage(r *http.Request, v *visit) bool {
	origin := r.Header.Get("Origin")
	return origin != "" && s.ownOrigin(origin, r, v) || r.Header.Get("Sec-Fetch-Site") == "same-origin"
}

const recordTimeout = 5 * time.Second

// record keeps an act with what came of it.
func (s *Server) record(ctx context.Context, v *visit, need access) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	a := &act.Act{
		At: s.opts.Now(), Address: v.address, Action: need.act, Target: clip(v.target), Sandbox: v.sandbox, Outcome: act.Done, Code: v.code, RequestID: v.id, Detail: v.detail,
	}
	if a.Action == "" {
		a.Action = v.operation
	}
	if v.visitor != nil {
		a.UserID, a.UserName, a.Via = v.visitor.User.ID, v.visitor.User.Name, v.visitor.Via
	}
	switch sandbox.Code(v.code) {
	case "":
	case door.CodeTooMany:
		return // it would fill the table, which is what it is refused for
	case codeForbidden, codeOrigin, door.CodeSignIn:
		a.Outcome = act.Denied
	default:
		a.Outcome = act.Failed
	}
	if err := s.opts.Acts.Add(ctx, a); err != nil {
		s.opts.Logger.ErrorContext(ctx, "act is not recorded", "action", a.Action, "target", a.Target, "user", a.UserName, "request_id", a.RequestID, "error", err)
	}
}

// recordNow keeps an act that may last long when it has begun.
func (s *Server) recordNow(ctx context.Context, v *visit) {
	s.record(ctx, v, accesses[v.operation])
	v.recorded = true
}

// complete tells of a route that stands in the table and is not served.
func (s *Server) complete() error {
	served := map[string]bool{"metrics": true, "openapi": true, "docs": true}
	for _, path := range s.api.OpenAPI().Paths {
		for _, op := range []*huma.Operation{path.Get, path.Put, path.Post, path.Delete, path.Patch, path.Head} {
			if op != nil {
				served[op.OperationID] = true
			}
		}
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(accesses)) {
		if !served[name] {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("routes of the table are not served: %s", strings.Join(missing, ", "))
	}
	document, err := s.api.OpenAPI().MarshalJSON()
	if err != nil {
		return errors.Join(errors.New("the OpenAPI document cannot be written"), err)
	}
	s.guarded(Prefix+"/openapi.json", "openapi", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oai.openapi+json;version=3.1")
		_, _ = w.Write(document) // the client may have gone
	})
	return s.viewer()
}

// guarded serves something beside the API, by its table.
func (s *Server) guarded(path, name string, serve http.HandlerFunc) {
	s.router.Get(path, func(w http.ResponseWriter, r *http.Request) {
		v := visitOf(r.Context())
		v.operation = name
		if err := s.admit(r, v, accesses[name]); err != nil {
			s.refuse(w, r, err)
			return
		}
		serve(w, r)
	})
}
