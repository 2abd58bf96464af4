package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

func count(n int64) string { return strconv.FormatInt(n, 10) }

// showTimeline prints a sandbox's operations, oldest first.
func (a *app) showTimeline(ctx context.Context, h *opened, filter history.Filter) error {
	if a.flags.output != "table" {
		list := []*history.Operation{}
		err := h.operations(ctx, filter, func(op *history.Operation) error { list = append(list, op); return nil })
		if err != nil {
			return err
		}
		return a.print(list, nil)
	}
	a.showHeader(h)
	none := true
	err := h.operations(ctx, filter, func(op *history.Operation) error {
		none = false
		if err := a.showEntry(ctx, h, op); err != nil {
			return err
		}
		return a.page.failed()
	})
	if err == nil && none {
		fmt.Fprintln(a.page, "  no operations")
	}
	return err
}

// The colours of a status, where the terminal shows them.
const (
	green  = "32"
	red    = "31"
	yellow = "33"
	dim    = "2"
)

// paint colours text if a person looks at it and has not asked otherwise.
func (a *app) paint(colour, text string) string {
	f, ok := a.out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (a *app) status(s sandbox.Status) string {
	switch s {
	case sandbox.Succeeded:
		return a.paint(green, "✓ succeeded")
	case sandbox.Started:
		return a.paint(yellow, "… running  ")
	case sandbox.Unsuccessful:
		return a.paint(red, "✗ failed   ")
	case sandbox.TimedOut:
		return a.paint(red, "✗ timeout  ")
	case sandbox.Cancelled:
		return a.paint(yellow, "– cancelled")
	}
	return a.paint(yellow, "? unknown  ")
}

func whoOf(op *history.Operation) string {
	who := plain(op.Actor.Type)
	if op.Actor.ID != "" {
		who += " " + plain(op.Actor.ID)
	}
	if op.Actor.Thread != "" {
		who += " | thread " + plain(op.Actor.Thread)
	}
	if op.Actor.Run != "" {
		who += " | run " + plain(op.Actor.Run)
	}
	if op.Foreign {
		who += " | recorded by the Python SDK: without line breaks"
	}
	return who
}

func whatOf(op *history.Operation) string {
	switch {
	case op.Command != nil:
		return "$ " + plain(op.Command.Line)
	case op.File != nil:
		return fileAct(op)
	}
	return plain(string(op.Request))
}

func duration(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1fms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// showOperation prints all that is kept of one operation.
func (a *app) showOperation(ctx context.Context, h *opened, op *history.Operation) error {
	if a.flags.output != "table" {
		return a.print(op, nil)
	}
	if err := a.showEntry(ctx, h, op); err != nil {
		return err
	}
	t := [][2]string{
		{"sandbox", h.ref.ID},
		{"started", op.StartedAt.Local().Format(time.RFC3339Nano)},
		{"thread", op.Actor.Thread},
		{"correlation", op.Actor.Correlation},
		{"request", string(op.Request)},
		{"result", string(op.Result)},
		{"redacted", maskedIn(op)},
	}
	for _, fact := range t {
		if fact[1] != "" {
			fmt.Fprintf(a.page, "    %-12s %s\n", fact[0], plain(fact[1]))
		}
	}
	a.showDiff(op)
	a.listChanges(op.Changes)
	for _, stream := range []sandbox.Stream{sandbox.Stdout, sandbox.Stderr} {
		if err := a.showOutput(ctx, h, op, stream); err != nil {
			return err
		}
	}
	return nil
}

// maskedIn tells how many secrets were masked in what is kept.
func maskedIn(op *history.Operation) string {
	var result struct {
		Redacted int `json:"redacted"`
	}
	if len(op.Result) == 0 || json.Unmarshal(op.Result, &result) != nil || result.Redacted <= 0 {
		return ""
	}
	return strconv.Itoa(result.Redacted) + " masked"
}

const shownOutput = 64 << 10

// showOutput prints the beginning of a stream, safe for a terminal.
func (a *app) showOutput(ctx context.Context, h *opened, op *history.Operation, stream sandbox.Stream) error {
	if op.Command == nil {
		return nil
	}
	data, err := h.Output(ctx, op.ID, stream, 0, shownOutput)
	if err != nil || len(data) == 0 {
		return err
	}
	fmt.Fprintf(a.page, "  %s\n", stream)
	for line := range strings.Lines(string(readable(op, data))) {
		fmt.Fprintf(a.page, "    %s\n", plain(strings.TrimRight(line, "\r\n")))
	}
	kept := op.Command.StdoutBytes
	if stream == sandbox.Stderr {
		kept = op.Command.StderrBytes
	}
	if kept > int64(len(data)) {
		fmt.Fprintf(a.page, "    … %d more bytes: --%s\n", kept-int64(len(data)), stream)
	}
	return nil
}
