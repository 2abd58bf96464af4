package execd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/glassboxhq/glassbox/internal/execd"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// fuzzed are the routes that read something from outside and start nothing.
var fuzzed = []string{
	"POST /files/upload", "POST /files/replace", "POST /files/permissions", "POST /files/mv", "POST /directories", "GET /files/download",
	"GET /files/info", "DELETE /files", "POST /code/context", "GET /command/x/logs", "POST /session/x/run",
}

// Whatever is sent, the answer is one that clients read, and a form never
// reaches a place that is protected, which here is every place.
func FuzzRequest(f *testing.F) {
	inner, err := native.New(&native.Options{Workdir: f.TempDir(), Protected: []string{"/"}})
	if err != nil {
		f.Fatal(err)
	}
	session := record.New(inner, nil, &record.Options{NoFileChanges: true})
	f.Cleanup(func() { session.Close(context.Background()) })
	handler := execd.New(session, nil, &execd.Options{Token: token, Whose: func(context.Context) (*execd.Identity, error) { return &execd.Identity{}, nil }})
	form := "--b\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"m\"\r\n\r\n{\"path\":\"/x\",\"mode\":644}\r\n--b\r\n" +
		"Content-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\ncontent\r\n--b--\r\n"
	f.Add(uint8(0), "", "", []byte(form))
	f.Add(uint8(0), "", "", []byte(strings.Replace(form, "/x", "/.agent-history/tmp/request-01a22ee7-1ec1-73f7-9be1-efa81e066764.json", 1)))
	f.Add(uint8(1), "verbose=true", "", []byte(`{"/x":{"old":"a","new":"b"}}`))
	f.Add(uint8(4), "", "", []byte(`{"/x":{"mode":9,"owner":"root"}}`))
	f.Add(uint8(5), "path=/proc/version", "bytes=0-1,2-", []byte(nil))
	f.Add(uint8(5), "path=/proc/version&offset=1&limit=9223372036854775807", "", []byte(nil))
	f.Add(uint8(5), "path=/proc/version", "bytes=-9223372036854775808", []byte(nil))
	f.Fuzz(func(t *testing.T, route uint8, query, span string, body []byte) {
		method, path, _ := strings.Cut(fuzzed[int(route)%len(fuzzed)], " ")
		r := httptest.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(body))
		r.URL.RawQuery = query
		if values, err := url.ParseQuery(query); err == nil && strings.HasPrefix(values.Get("path"), "/proc/") && values.Get("path") != "/proc/version" {
			return // others of the kernel may have no end
		}
		r.Header.Set(wire.HeaderExecdToken, token)
		r.Header.Set("Range", span)
		r.Header.Set("Content-Type", `multipart/form-data; boundary="b"`)
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if v := recover(); v != nil && v != http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
					panic(v)
				}
			}()
			handler.ServeHTTP(w, r)
		}()
		if w.Code < 300 {
			return
		}
		var told struct{ Code, Message string }
		if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil || told.Code == "" || told.Message == "" {
			t.Errorf("%s %s %q: got %d %q", method, path, body, w.Code, w.Body)
		}
	})
}

// Whatever a viewer of a terminal sends, the terminal goes on, and so does the
// connection.
func FuzzViewer(f *testing.F) {
	inner, err := native.New(&native.Options{Workdir: f.TempDir(), Env: map[string]string{"PATH": os.Getenv("PATH")}})
	if err != nil {
		f.Fatal(err)
	}
	session := record.New(inner, nil, &record.Options{NoFileChanges: true})
	server := httptest.NewServer(execd.New(session, nil, &execd.Options{Token: token, Dir: f.TempDir()}))
	f.Cleanup(func() { server.Close(); session.Close(context.Background()) })
	var conn *websocket.Conn
	open := func(t *testing.T) {
		t.Helper()
		head := http.Header{}
		head.Set(wire.HeaderExecdToken, token)
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/pty", strings.NewReader(`{"command":"stty raw -echo; exec cat >/dev/null"}`))
		r.Header = head
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		var made struct {
			ID string `json:"session_id"`
		}
		err = json.NewDecoder(res.Body).Decode(&made)
		res.Body.Close()
		if err == nil {
			conn, _, err = websocket.Dial(context.Background(), server.URL+"/pty/"+made.ID+"/ws", &websocket.DialOptions{HTTPHeader: head})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	f.Add(false, []byte("\x00keys"))
	f.Add(false, []byte{3, 0})
	f.Add(true, []byte(`{"type":"resize","cols":0,"rows":70000}`))
	f.Add(true, []byte(`{"type":"signal","signal":"SIGWINCH"}`))
	f.Add(true, []byte(`{"type":"stdin","data":"\u0000"}`))
	f.Fuzz(func(t *testing.T, text bool, data []byte) {
		if conn == nil {
			open(t)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		kind := websocket.MessageBinary
		if text {
			kind = websocket.MessageText
		}
		err := errors.Join(conn.Write(ctx, kind, data), conn.Write(ctx, websocket.MessageText, []byte(`{"type":"ping"}`)))
		for err == nil {
			var answer []byte
			if _, answer, err = conn.Read(ctx); bytes.Contains(answer, []byte(`"pong"`)) {
				return
			}
		}
		conn.CloseNow()
		conn = nil
		if code := websocket.CloseStatus(err); code != websocket.StatusNormalClosure { // a signal may have ended the program
			t.Errorf("after %q: %v", data, err)
		}
	})
}
