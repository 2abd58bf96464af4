package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// showHeader says whose operations follow, and in which zone their times are.
func (a *app) showHeader(h *opened) {
	a.day = ""
	name, state := plain(h.ref.Name), strings.ToLower(string(h.ref.State))
	fmt.Fprintf(a.page, "sandbox %s  %s  %s", h.ref.ID, name, state)
	if !h.ref.Created.IsZero() {
		a.day = dayOf(h.ref.Created)
		fmt.Fprintf(a.page, "  %s", a.day)
	}
	fmt.Fprintln(a.page)
}

// dayOf is a day with the zone of who looks.
func dayOf(t time.Time) string { return t.Local().Format("2006-01-02 MST") }

// showEntry prints one operation of a timeline.
func (a *app) showEntry(ctx context.Context, h history.Reader, op *history.Operation) error {
	if day := dayOf(op.StartedAt); day != a.day {
		a.day = day
		fmt.Fprintf(a.page, "\n%s\n", day)
	}
	took := ""
	if history.Final(op.Status) && !op.CompletedAt.IsZero() {
		took = duration(op.Duration)
	}
	door, sign := op.Source, a.status(op.Status)
	if warns(op) {
		door, sign = "recorder", a.paint(yellow, "⚠ warning  ")
	}
	fmt.Fprintf(a.page, "\n%s  [%s] %-18s %s %8s  %s\n",
		op.StartedAt.Local().Format("15:04:05.000"), plain(door), plain(op.Type), sign, took, a.paint(dim, plain(op.ID)))
	if warns(op) {
		a.fact("%s", warning(op))
		return nil
	}
	a.fact("by %s", whoOf(op))
	if what := whatOf(op); what != "" {
		a.fact("%s", short(what, 200))
	}
	if op.Command == nil {
		a.showReason(op)
		return nil
	}
	if dir := elsewhere(op); dir != "" {
		a.fact("in %s", short(plain(dir), 200))
	}
	if err := a.showTelling(ctx, h, op); err != nil {
		return err
	}
	a.showReason(op)
	a.showChanges(op.Changes)
	return nil
}

// fact prints a line of an entry.
func (a *app) fact(format string, args ...any) { fmt.Fprintf(a.page, "    "+format+"\n", args...) }

// warns reports whether an operation is no act of anybody, but tells that
// something of the record is missing.
func warns(op *history.Operation) bool {
	return op.Type == history.HistoryGap || op.Type == history.RecorderRestart
}

// outcome is what a result tells beside what the operation has in fields.
type outcome struct {
	Operations  *int64 `json:"operations"`
	Interrupted int64  `json:"interrupted_operations"`
	Killed      int64  `json:"killed_processes"`
	Reason      string `json:"reason"`
	Error       struct {
		Message string `json:"message"`
	} `json:"error"`
	StdoutTotal int64 `json:"stdout_total_bytes"`
	StderrTotal int64 `json:"stderr_total_bytes"`
}

// outcomeOf reads a result. It may come from anybody: what cannot be read is
// not told.
func outcomeOf(op *history.Operation) (o outcome) {
	if json.Unmarshal(op.Result, &o) != nil {
		return outcome{}
	}
	return o
}

// warning tells what of the record is missing, and why.
func warning(op *history.Operation) string {
	o := outcomeOf(op)
	text := "operations are missing here, nobody knows how many"
	switch {
	case op.Type == history.RecorderRestart:
		text = "the recorder began anew: " + number(o.Interrupted, "operation") + " interrupted, " + number(o.Killed, "process") + " killed"
	case o.Operations != nil:
		text = number(*o.Operations, "operation") + " missing here"
	}
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	return short(plain(text), 300)
}

// number counts things.
func number(n int64, thing string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(thing, "s"):
		thing += "es"
	default:
		thing += "s"
	}
	return count(n) + " " + thing
}

// showReason tells why an operation has not simply succeeded. The exit code of
// what was stopped is that of the stop, and tells nothing.
func (a *app) showReason(op *history.Operation) {
	o := outcomeOf(op)
	why, stopped := []string{o.Reason}, op.Status == sandbox.TimedOut || op.Status == sandbox.Cancelled
	switch c := op.Command; {
	case o.Error.Message != "":
		why = []string{o.Error.Message}
	case op.Status == sandbox.TimedOut && c != nil && c.TimeoutMS > 0:
		why = []string{fmt.Sprintf("stopped at its timeout of %v", time.Duration(c.TimeoutMS)*time.Millisecond)}
	case c != nil && c.ExitCode != nil && *c.ExitCode > 0 && !stopped:
		why = []string{fmt.Sprintf("exit code %d", *c.ExitCode), o.Reason}
	case op.Status == sandbox.Succeeded || op.Status == sandbox.Started:
		return
	}
	if text := strings.Join(slices.DeleteFunc(why, func(s string) bool { return s == "" }), ", "); text != "" {
		a.fact("%s", short(plain(text), 300))
	}
}

// elsewhere is the folder of a command that was not run in the sandbox's own.
func elsewhere(op *history.Operation) string {
	var request struct {
		Dir string `json:"cwd"` // as it was asked for
	}
	if json.Unmarshal(op.Request, &request) != nil || request.Dir == "" || op.Command.Dir == wire.DefaultWorkdir {
		return ""
	}
	return op.Command.Dir
}
