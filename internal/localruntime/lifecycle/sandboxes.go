package lifecycle

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The codes for a sandbox that is not in the state that was asked for.
const (
	codeNotRunning = "DOCKER::SANDBOX_NOT_RUNNING"
	codeNotPaused  = "DOCKER::SANDBOX_NOT_PAUSED"
	codeExpiration = "DOCKER::INVALID_EXPIRATION"
)

// maxBody bounds the body of a request of this API.
const maxBody = 1 << 20

// route is a path below /sandboxes or /snapshots.
type route struct {
	prefix string
	noun   string
	parts  []string
}

// act answers one method at a route.
type act func(http.ResponseWriter, *http.Request, *route)

func (a *api) act(w http.ResponseWriter, r *http.Request, at *route) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	acts := a.acts(at.parts)
	if at.noun == "snapshots" {
		acts = a.snapshotActs(at.parts)
	}
	switch serve, known := acts[r.Method]; {
	case known:
		serve(w, r, at)
	case len(acts) > 0:
		wrongMethod(w)
	case len(at.parts) > 1 && at.parts[1] == "networkpolicy":
		notSupported(w, at.parts[1])
	default:
		notFound(w)
	}
}

// acts returns what can be done at a path below /sandboxes, by method.
func (a *api) acts(parts []string) map[string]act {
	switch {
	case len(parts) == 0:
		return map[string]act{http.MethodGet: a.list, http.MethodPost: a.create}
	case parts[0] == "":
		return nil
	case len(parts) == 1:
		return map[string]act{http.MethodGet: a.get, http.MethodDelete: a.delete}
	case len(parts) == 3 && parts[1] == "endpoints":
		return map[string]act{http.MethodGet: a.endpoint}
	case len(parts) == 3 && parts[1] == "diagnostics" && diagnostics[parts[2]] != nil:
		return map[string]act{http.MethodGet: a.diagnose}
	case len(parts) > 2:
		return nil
	}
	switch parts[1] {
	case "pause":
		return map[string]act{http.MethodPost: a.pause}
	case "resume":
		return map[string]act{http.MethodPost: a.resume}
	case "renew-expiration":
		return map[string]act{http.MethodPost: a.renew}
	case "metadata":
		return map[string]act{http.MethodPatch: a.setMetadata}
	case "snapshots":
		return map[string]act{http.MethodPost: a.takeSnapshot}
	}
	return nil
}

func (a *api) get(w http.ResponseWriter, r *http.Request, at *route) {
	info, err := a.rt.Get(r.Context(), at.parts[0])
	if err != nil {
		fail(w, err, codeNotRunning)
		return
	}
	writeJSON(w, http.StatusOK, a.describe(r, info))
}

func (a *api) delete(w http.ResponseWriter, r *http.Request, at *route) {
	d := &done{opType: history.SandboxDelete, sandbox: at.parts[0], began: time.Now()}
	n := newNote(r, d, nil)
	a.claim(r, d.sandbox, n)
	if err := a.rt.DeleteNoted(r.Context(), d.sandbox, n); err != nil {
		if failed := newNote(r, d, err); !errors.Is(err, sandbox.ErrNotFound) {
			failed.Op.ID, failed.Claimed = n.Op.ID, n.Claimed
			a.rt.Record(r.Context(), d.sandbox, failed)
		}
		fail(w, err, codeNotRunning)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (a *api) pause(w http.ResponseWriter, r *http.Request, at *route) {
	began := time.Now()
	err := a.moved(r.Context(), at.parts[0], a.rt.Pause)
	a.record(r, &done{opType: history.SandboxPause, sandbox: at.parts[0], began: began}, err)
	if err != nil {
		fail(w, err, codeNotRunning)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (a *api) resume(w http.ResponseWriter, r *http.Request, at *route) {
	began := time.Now()
	err := a.moved(r.Context(), at.parts[0], a.rt.Resume)
	a.record(r, &done{opType: history.SandboxResume, sandbox: at.parts[0], began: began}, err)
	if err != nil {
		fail(w, err, codeNotPaused)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (a *api) renew(w http.ResponseWriter, r *http.Request, at *route) {
	var body map[string]json.RawMessage
	if !readBody(w, r, &body) {
		return
	}
	raw, ok := body["expiresAt"]
	if !ok {
		raw, ok = body["expires_at"]
	}
	when, valid := readTime(raw)
	if !ok || !valid {
		unprocessable(w, "must be a time such as 2026-01-02T15:04:05Z", "body", "expiresAt")
		return
	}
	began := time.Now()
	info, err := a.rt.Renew(r.Context(), at.parts[0], when)
	if err != nil || a.renewals.news(at.parts[0]+" "+actorOf(r).ID, when, began) {
		a.record(r, &done{opType: history.SandboxRenew, sandbox: at.parts[0], began: began, request: map[string]any{"expires_at": when}}, err)
	}
	switch {
	case errors.Is(err, sandbox.ErrInvalid):
		w.Header().Set(headerCode, string(sandbox.CodeInvalid))
		writeError(w, http.StatusBadRequest, codeExpiration, err.Error())
	case err != nil:
		fail(w, err, codeExpiration)
	default:
		writeJSON(w, http.StatusOK, map[string]string{"expiresAt": timestamp(info.ExpiresAt)})
	}
}

// readTime reads a time as the original does: RFC 3339, where no zone means
// UTC, or seconds since 1970.
func readTime(raw json.RawMessage) (time.Time, bool) {
	var seconds float64
	if json.Unmarshal(raw, &seconds) == nil && seconds > 0 {
		whole, part := math.Modf(min(seconds, 1<<40))
		t := time.Unix(int64(whole), int64(part*1e9)).UTC()
		return t, t.Year() <= maxYear
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return time.Time{}, false
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil && !t.IsZero() {
			return t.UTC(), t.UTC().Year() <= maxYear
		}
	}
	return time.Time{}, false
}

// maxYear is the last one that RFC 3339, and so our records, can tell.
const maxYear = 9999

// endpoint tells where a port is reached. Both kinds of endpoint lead through
// the server here: a sandbox has no address of its own.
func (a *api) endpoint(w http.ResponseWriter, r *http.Request, at *route) {
	id, text := at.parts[0], at.parts[2]
	port, err := strconv.Atoi(text)
	switch {
	case err != nil:
		unprocessable(w, "must be a number", "path", "port")
		return
	case port < 1 || port > 65535:
		writeError(w, http.StatusBadRequest, "DOCKER::INVALID_PORT", "the port must be between 1 and 65535")
		return
	case r.URL.Query().Has("expires"):
		writeError(w, http.StatusBadRequest, "SANDBOX::API_NOT_SUPPORTED", "the local runtime has no signed endpoints")
		return
	}
	access, err := a.rt.Access(r.Context(), id)
	if err != nil {
		fail(w, err, codeNotRunning)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"endpoint": r.Host + at.prefix + "/sandboxes/" + id + "/proxy/" + strconv.Itoa(port),
		"headers":  map[string]string{wire.HeaderExecdToken: access.ExecdToken, wire.HeaderToken: access.Token},
	})
}

// list answers with one page of the sandboxes that the filters leave.
func (a *api) list(w http.ResponseWriter, r *http.Request, _ *route) {
	query := r.URL.Query()
	at, ok := readPage(w, query)
	if !ok {
		return
	}
	labels, ok := readLabels(query.Get("metadata"))
	if !ok {
		writeError(w, http.StatusBadRequest, "INVALID_METADATA_FORMAT", "metadata must be key=value pairs joined by &, encoded as one value")
		return
	}
	all, err := a.rt.List(r.Context())
	if err != nil {
		fail(w, err, codeNotRunning)
		return
	}
	all = slices.DeleteFunc(all, func(info *sandbox.Info) bool { return !matches(info, query["state"], labels) })
	writePage(w, at, all, func(info *sandbox.Info) any { return a.describe(r, info) })
}

// readLabels reads the query string within the query string.
func readLabels(text string) (map[string]string, bool) {
	labels := map[string]string{}
	if text == "" {
		return labels, true
	}
	for pair := range strings.SplitSeq(text, "&") {
		key, value, ok := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(key)
		if err != nil || !ok {
			return nil, false
		}
		if labels[key], err = url.QueryUnescape(value); err != nil {
			return nil, false
		}
	}
	return labels, true
}

func matches(info *sandbox.Info, states []string, labels map[string]string) bool {
	if !anyState(states, string(info.State)) {
		return false
	}
	for key, value := range labels {
		if has, ok := info.Metadata[key]; !ok || has != value {
			return false
		}
	}
	return true
}

// anyState reports whether a state is one of those asked for; none: all are.
func anyState(states []string, state string) bool {
	return len(states) == 0 || slices.ContainsFunc(states, func(asked string) bool { return strings.EqualFold(asked, state) })
}

// readBody reads a JSON object, and answers the request when there is none.
func readBody(w http.ResponseWriter, r *http.Request, v any) bool {
	text, ok := readAll(w, r)
	if !ok {
		return false
	}
	if err := json.Unmarshal(text, v); err != nil {
		unprocessable(w, "the body must be a JSON object", "body")
		return false
	}
	return true
}

func readAll(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	text, err := io.ReadAll(r.Body)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		writeError(w, http.StatusRequestEntityTooLarge, "SANDBOX::INVALID_PARAMETER",
			"the body is over the limit of "+strconv.FormatInt(tooLarge.Limit, 10)+" bytes")
		return nil, false
	}
	return text, err == nil // else the client went
}
