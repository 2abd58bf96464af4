package execd_test

import (
	"slices"
	"strings"
	"testing"
)

func TestCode(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, language := range []string{"", "command"} {
		a := s.must(t, "POST /code", map[string]any{"context": map[string]any{"language": language, "cwd": "/"}, "code": "pwd; exit 3"})
		list := a.events(t)
		last := list[len(list)-1]
		if out := texts(list, "stdout"); !slices.Equal(out, []string{"/"}) || last.Error == nil || last.Error.Value != "3" {
			t.Errorf("language %q: got %s", language, a.body)
		}
	}
	if ops := s.operations(t); len(ops) != 2 || ops[0].Command.Line != "pwd; exit 3" {
		t.Errorf("got %d operations, want the two", len(ops))
	}
	for _, tt := range []struct {
		route  string
		body   any
		status int
		holds  string
	}{
		{"POST /code", map[string]any{"context": map[string]any{"language": "python"}, "code": "1"}, 501, "NOT_SUPPORTED"},
		{"POST /code", map[string]any{"context": map[string]any{"id": "x"}, "code": "1"}, 404, "CONTEXT_NOT_FOUND"},
		{"POST /code", map[string]any{"code": ""}, 400, "INVALID_REQUEST_BODY"},
		{"POST /code", "no object", 400, "INVALID_REQUEST_BODY"},
		{"POST /code/context", map[string]any{"language": "python"}, 501, "NOT_SUPPORTED"},
		{"GET /code/contexts?language=python", nil, 200, "[]"},
		{"GET /code/contexts/x", nil, 404, "CONTEXT_NOT_FOUND"},
		{"DELETE /code/contexts/x", nil, 404, "CONTEXT_NOT_FOUND"},
		{"DELETE /code/contexts", nil, 200, ""},
		{"DELETE /code?id=x", nil, 404, "COMMAND_NOT_FOUND"},
		{"GET /v1/isolated/capabilities", nil, 200, `"available":false`},
		{"GET /v1/isolated/sessions", nil, 501, "NOT_SUPPORTED"},
		{"POST /v1/isolated/session", map[string]any{}, 501, "NOT_SUPPORTED"},
		{"POST /v1/isolated/session/x/run", map[string]any{}, 501, "NOT_SUPPORTED"},
	} {
		if a := s.do(t, tt.route, tt.body); a.status != tt.status || !strings.Contains(string(a.body), tt.holds) {
			t.Errorf("%s %v: got %d %s, want %d with %s", tt.route, tt.body, a.status, a.body, tt.status, tt.holds)
		}
	}
}
