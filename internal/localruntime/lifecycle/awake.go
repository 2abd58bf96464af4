package lifecycle

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/glassboxhq/glassbox/sandbox"
)

// The Python package agent-sandbox-backends records the end of a pause when the
// sandbox stands still, and the start of a resume before it goes on. So a
// paused sandbox is let go on for the moment that such a record takes.

// Where the package puts a record, and with what it begins to have it taken.
const (
	recordFile = "/.agent-history/tmp/request-"
	recordCall = "python3 /.agent-history/bin/history-helper-v1.pyz --database /.agent-history/history.sqlite3 "
)

// maxRecord bounds a request that wakes a sandbox, as the package bounds it.
const maxRecord = 2 << 20

// keepsRecord reports whether a request is for a record of the package, and
// has read it then.
func keepsRecord(r *http.Request, path string) bool {
	if r.Method == http.MethodDelete && path == "/files" {
		names := r.URL.Query()["path"]
		return len(names) == 1 && strings.HasPrefix(names[0], recordFile)
	}
	if r.Method != http.MethodPost || path != "/files/upload" && path != "/command" {
		return false
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRecord+1))
	if err != nil || len(body) > maxRecord {
		return false
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if path == "/command" {
		var asked struct{ Command string }
		return json.Unmarshal(body, &asked) == nil && strings.HasPrefix(asked.Command, recordCall)
	}
	copied := &http.Request{Header: r.Header, Body: io.NopCloser(bytes.NewReader(body))}
	form, err := copied.MultipartReader()
	return err == nil && uploadsRecord(form)
}

func uploadsRecord(form *multipart.Reader) bool {
	part, err := form.NextPart()
	if err != nil || part.FormName() != "metadata" {
		return false
	}
	var file struct{ Path string }
	return json.NewDecoder(part).Decode(&file) == nil && strings.HasPrefix(file.Path, recordFile)
}

// awake lets a paused sandbox go on while a record is taken, and answers when
// it stands still again. Pauses and resumes wait meanwhile, so that none of them
// is undone.
func (a *api) awake(w http.ResponseWriter, r *http.Request, id string, serve func(http.ResponseWriter)) {
	release, err := a.moves.Write(r.Context(), "/"+id)
	if err != nil {
		return // the client has gone
	}
	defer release()
	if _, err := a.rt.Resume(r.Context(), id); err != nil {
		serve(w) // it goes on already, and stays so
		return
	}
	answer := &held{header: w.Header()}
	defer answer.tell(w)
	defer func() {
		if _, err := a.rt.Pause(context.WithoutCancel(r.Context()), id); err != nil {
			a.opts.Logger.WarnContext(r.Context(), "a sandbox that took a record is not paused again", "sandbox", id, "error", err)
		}
	}()
	serve(answer)
}

// held keeps an answer, which is short, until it is to be told.
type held struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (h *held) Header() http.Header         { return h.header }
func (h *held) WriteHeader(status int)      { h.status = status }
func (h *held) Write(p []byte) (int, error) { return h.body.Write(p) }
func (h *held) Flush()                      {}

func (h *held) tell(w http.ResponseWriter) {
	if h.status != 0 { // else it was broken off
		w.WriteHeader(h.status)
	}
	_, _ = w.Write(h.body.Bytes())
}

// moved does a pause or a resume when no record is being taken.
func (a *api) moved(ctx context.Context, id string, move func(context.Context, string) (*sandbox.Info, error)) error {
	release, err := a.moves.Write(ctx, "/"+id)
	if err != nil {
		return sandbox.FromContext(ctx, "move sandbox")
	}
	defer release()
	_, err = move(ctx, id)
	return err
}
