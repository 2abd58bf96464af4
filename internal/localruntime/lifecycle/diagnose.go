package lifecycle

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Diagnoser tells what is known of a sandbox, for whoever looks for a fault.
type Diagnoser interface {
	Diagnose(ctx context.Context, id string) (*Diagnosis, error)
}

// Diagnosis is what is known of a sandbox. No secret is in it.
type Diagnosis struct {
	Facts   [][2]string // what it is, by name
	Events  []Event     // what happened to it, oldest first
	Console string      // the end of what its first process printed
	Cut     bool        // Console has lost its beginning
}

// Event is something that happened to a sandbox.
type Event struct {
	At            time.Time
	What, Message string
}

// diagnostics are the texts that there are.
var diagnostics = map[string]func(*Diagnosis, *bounds) text{
	"logs": logs, "events": events, "inspect": inspect, "summary": summary,
}

// scopes are what the newer form of logs and events can be asked for.
var scopes = map[string][]string{"logs": {"container", "all"}, "events": {"runtime", "lifecycle", "all"}}

// bounds say how much of a text is wanted.
type bounds struct{ lines, events int }

type text struct {
	content string
	cut     bool
}

// diagnose answers with a plain text, or, where a scope is named, with a
// description of one.
func (a *api) diagnose(w http.ResponseWriter, r *http.Request, at *route) {
	kind := at.parts[2]
	query := r.URL.Query()
	scope := query.Get("scope")
	if scope == "" || scopes[kind] == nil {
		a.diagnoseText(w, r, at.parts[0], kind)
		return
	}
	if !slices.Contains(scopes[kind], scope) {
		writeError(w, http.StatusBadRequest, "DIAGNOSTICS_SCOPE_UNSUPPORTED", "the scopes are: "+strings.Join(scopes[kind], ", "))
		return
	}
	d, err := a.rt.Diagnose(r.Context(), at.parts[0])
	if err != nil {
		fail(w, err, codeNotRunning)
		return
	}
	t := diagnostics[kind](d, &bounds{lines: maxLines, events: maxEvents})
	writeJSON(w, http.StatusOK, map[string]any{
		"sandboxId": at.parts[0], "kind": kind, "scope": scope, "delivery": "inline", "contentType": "text/plain; charset=utf-8",
		"content": t.content, "contentLength": len(t.content), "truncated": t.cut,
	})
}

const (
	maxLines  = 10000
	maxEvents = 500
)

func (a *api) diagnoseText(w http.ResponseWriter, r *http.Request, id, kind string) {
	b, ok := readBounds(w, r.URL.Query(), kind)
	if !ok {
		return
	}
	d, err := a.rt.Diagnose(r.Context(), id)
	if err != nil {
		fail(w, err, codeNotRunning)
		return
	}
	if scopes[kind] != nil {
		w.Header().Set("Deprecation", "true") // name a scope
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte(diagnostics[kind](d, b).content)) // the client may have gone
}

// readBounds reads how much is wanted. What the first process prints has no
// times, so all of it counts as newer than any "since".
func readBounds(w http.ResponseWriter, query url.Values, kind string) (*bounds, bool) {
	b := &bounds{}
	for _, q := range []struct {
		name          string
		to            *int
		missing, most int
	}{
		{"tail", &b.lines, 100, maxLines},
		{map[bool]string{true: "event_limit", false: "limit"}[kind == "summary"], &b.events, 50, maxEvents},
	} {
		var ok bool
		if *q.to, ok = readNumber(query, q.name, q.missing, q.most); !ok {
			unprocessable(w, "must be a number from 1 to "+strconv.Itoa(q.most), "query", q.name)
			return nil, false
		}
	}
	return b, true
}

func logs(d *Diagnosis, b *bounds) text {
	lines := strings.SplitAfter(clean(d.Console), "\n")
	last := lines[max(0, len(lines)-b.lines-1):] // the piece after the last line break is empty, most often
	return text{strings.Join(last, ""), d.Cut || len(last) < len(lines)}
}

func events(d *Diagnosis, b *bounds) text {
	last := d.Events[max(0, len(d.Events)-b.events):]
	var t strings.Builder
	for _, e := range last {
		fmt.Fprintf(&t, "%s  %s  %s\n", timestamp(e.At), e.What, oneLine(e.Message))
	}
	return text{t.String(), len(last) < len(d.Events)}
}

func inspect(d *Diagnosis, _ *bounds) text {
	var t strings.Builder
	for _, fact := range d.Facts {
		fmt.Fprintf(&t, "%s: %s\n", fact[0], oneLine(fact[1]))
	}
	return text{t.String(), false}
}

func summary(d *Diagnosis, b *bounds) text {
	var t strings.Builder
	cut := false
	for _, part := range []struct {
		title string
		text
	}{{"INSPECT", inspect(d, b)}, {"EVENTS", events(d, b)}, {"LOGS", logs(d, b)}} {
		fmt.Fprintf(&t, "== %s ==\n%s\n", part.title, part.content)
		cut = cut || part.cut
	}
	return text{t.String(), cut}
}

// clean makes what a sandbox printed safe to show in a terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control)) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

func oneLine(s string) string { return strings.NewReplacer("\n", " ", "\t", " ").Replace(clean(s)) }
