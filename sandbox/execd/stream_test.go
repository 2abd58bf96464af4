package execd_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/execd"
)

const (
	initEvent = `{"type":"init","text":"abc","timestamp":1}` + "\n\n" + `{"type":"ping","text":"pong","timestamp":1}` + "\n\n"
	hello     = `{"type":"stdout","text":"hello","timestamp":1}` + "\n\n"
	complete  = `{"type":"execution_complete","timestamp":1}` + "\n\n"
)

// stub is an execd as the field has them: it sends this stream, and then
// holds it open; each answer of status is given once, the last one for ever.
func stub(t *testing.T, stream string, hold time.Duration, status ...string) *execd.Session {
	t.Helper()
	var asked atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("POST /command", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, stream)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(hold):
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("GET /command/status/abc", func(w http.ResponseWriter, _ *http.Request) {
		n := min(int(asked.Add(1)), len(status)) - 1
		if n < 0 || status[n] == "" {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"code":"INVALID_REQUEST_BODY","message":"command not found: abc"}`)
			return
		}
		fmt.Fprint(w, status[n])
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return execd.New(srv.URL, nil)
}

func TestStream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, stream string
		status       []string
		stdout       string
		exit         int
		want         sandbox.Status
		truncated    bool
	}{
		{name: "bare JSON", stream: initEvent + hello + complete, stdout: "hello\n", want: sandbox.Succeeded},
		{name: "with data:", stream: "event: x\ndata: " + strings.ReplaceAll(initEvent+hello+complete, "\n\n{", "\n\ndata: {"), stdout: "hello\n", want: sandbox.Succeeded},
		{name: "unknown events", stream: initEvent + `{"type":"status","text":"?"}` + "\n\n" + hello + complete, stdout: "hello\n", want: sandbox.Succeeded},
		{name: "code", stream: initEvent + `{"type":"error","error":{"ename":"CommandExecError","evalue":"3","traceback":["exit status 3"]}}` + "\n\n", exit: 3, want: sandbox.Unsuccessful},
		{name: "signal", stream: initEvent + `{"type":"error","error":{"ename":"CommandExecError","evalue":"-1","traceback":["signal: segmentation fault (core dumped)"]}}` + "\n\n", exit: 139, want: sandbox.Unsuccessful},
		{name: "long line", stream: initEvent + `{"type":"stdout","text":"` + strings.Repeat("x", 3<<20) + `"}` + "\n\n" + complete, stdout: strings.Repeat("x", 3<<20) + "\n", want: sandbox.Succeeded},
		{name: "no end, then asked", stream: initEvent + hello, status: []string{"", `{"running":true}`, `{"running":false,"exit_code":5}`}, stdout: "hello\n", exit: 5, want: sandbox.Unsuccessful, truncated: true},
		{name: "cut within an event", stream: initEvent + hello + `{"type":"std`, status: []string{`{"running":false,"exit_code":0}`}, stdout: "hello\n", want: sandbox.Succeeded, truncated: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, err := stub(t, tt.stream, 0, tt.status...).Run(t.Context(), &sandbox.Command{Line: "x", MaxOutput: 8 << 20})
			if err != nil {
				t.Fatal(err)
			}
			if res.Status != tt.want || res.ExitCode != tt.exit || string(res.Stdout) != tt.stdout || res.Truncated != tt.truncated {
				t.Errorf("got %s, code %d, %d bytes, truncated %v", res.Status, res.ExitCode, len(res.Stdout), res.Truncated)
			}
		})
	}
}

// Nothing is made up of a command whose end nobody knows.
func TestLost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, stream string
		status       []string
		want         error
	}{
		{"no end, unknown", initEvent + hello, nil, sandbox.ErrInterrupted},
		{"no end, no code", initEvent + hello, []string{`{"running":false}`}, sandbox.ErrInterrupted},
		{"no beginning", "", nil, sandbox.ErrInterrupted},
		{"end without a code", initEvent + `{"type":"error"}` + "\n\n", nil, sandbox.ErrInterrupted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, err := stub(t, tt.stream, 0, tt.status...).Run(t.Context(), &sandbox.Command{Line: "x"})
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if res != nil && (res.Status != sandbox.Lost || res.ExitCode != -1) {
				t.Errorf("got %+v, want it unknown", res)
			}
		})
	}
	for name, stream := range map[string]string{
		"bare error":  initEvent + hello + `{"code":"RUNTIME_ERROR","message":"something broke"}`,
		"not started": initEvent + `{"type":"error","error":{"ename":"CommandExecError","evalue":"fork/exec /bin/bash: no such file or directory","traceback":[]}}` + "\n\n",
	} {
		if res, err := stub(t, stream, 0).Run(t.Context(), &sandbox.Command{Line: "x"}); err == nil || errors.Is(err, sandbox.ErrInterrupted) {
			t.Errorf("%s: got %+v, %v, want what execd said", name, res, err)
		}
	}
}

// Execd holds a stream open for a second after the last event.
func TestTail(t *testing.T) {
	t.Parallel()
	began := time.Now()
	res, err := stub(t, initEvent+hello+complete, time.Minute).Run(t.Context(), &sandbox.Command{Line: "x"})
	if err != nil || res.Status != sandbox.Succeeded || time.Since(began) > 30*time.Second {
		t.Errorf("got %+v, %v after %v, want the result at the last event", res, err, time.Since(began))
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   error
	}{
		{"ordinary error as 500", 500, `{"code":"RUNTIME_ERROR","message":"open /x: permission denied"}`, sandbox.ErrPermission},
		{"missing as 500", 500, `{"code":"RUNTIME_ERROR","message":"stat /x: no such file or directory"}`, sandbox.ErrNotFound},
		{"no space as 500", 500, `{"code":"RUNTIME_ERROR","message":"write /x: no space left on device"}`, sandbox.ErrNoSpace},
		{"token", 401, `{"error":"Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN"}`, sandbox.ErrUnauthorized},
		{"no such route", 404, "404 page not found", sandbox.ErrUnsupported},
		{"proxy to a closed port", 502, `{"code":"BACKEND_CONNECTION_FAILED","message":"no"}`, sandbox.ErrUnavailable},
		{"a page", 500, "<html>", sandbox.ErrUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			}))
			defer srv.Close()
			_, err := execd.New(srv.URL, nil).List(t.Context(), "/x")
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if strings.Contains(fmt.Sprint(err), srv.URL) {
				t.Errorf("the error tells the URL: %v", err)
			}
		})
	}
}
