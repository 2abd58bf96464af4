package main

import (
	"bytes"
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
	fmt.Fprintf(a.page, "sandbox %s  %s  %s\n", h.ref.ID, plain(h.ref.Name), strings.ToLower(string(h.ref.State)))
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

// showEntry prints one operation of a timeline.
func (a *app) showEntry(ctx context.Context, h history.Reader, op *history.Operation) error {
	took := ""
	if history.Final(op.Status) && !op.CompletedAt.IsZero() {
		took = duration(op.Duration)
	}
	fmt.Fprintf(a.page, "\n%s  [%s] %-18s %s %8s  %s\n",
		op.StartedAt.Local().Format("15:04:05.000"), plain(op.Source), plain(op.Type), a.status(op.Status), took, a.paint(dim, plain(op.ID)))
	fmt.Fprintf(a.page, "    by %s\n", whoOf(op))
	if what := whatOf(op); what != "" {
		fmt.Fprintf(a.page, "    %s\n", short(what, 200))
	}
	if why := unknownFor(op); why != "" {
		fmt.Fprintf(a.page, "    %s\n", short(plain(why), 200))
	}
	if op.Command == nil {
		return nil
	}
	stream := sandbox.Stdout
	if op.Command.StderrBytes > 0 && (op.Status != sandbox.Succeeded || op.Command.StdoutBytes == 0) {
		stream = sandbox.Stderr
	}
	line, err := telling(ctx, h, op, stream)
	if err != nil {
		return err
	}
	if line != "" {
		fmt.Fprintf(a.page, "    ▸ %s: %s\n", stream, short(plain(line), 200))
	}
	if op.Command.ExitCode != nil && *op.Command.ExitCode != 0 {
		fmt.Fprintf(a.page, "    exit code %d\n", *op.Command.ExitCode)
	}
	return nil
}

// unknownFor tells why nobody knows how an operation ended.
func unknownFor(op *history.Operation) string {
	var result struct {
		Reason string `json:"reason"`
	}
	if op.Status != sandbox.Lost || json.Unmarshal(op.Result, &result) != nil {
		return ""
	}
	return result.Reason
}

func whoOf(op *history.Operation) string {
	who := plain(op.Actor.Type)
	if op.Actor.ID != "" {
		who += " " + plain(op.Actor.ID)
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

// telling returns the line that tells most: the last of stderr when something
// failed, else the first that was printed.
func telling(ctx context.Context, h history.Reader, op *history.Operation, stream sandbox.Stream) (string, error) {
	const look = 4096
	kept := op.Command.StdoutBytes
	if stream == sandbox.Stderr {
		kept = op.Command.StderrBytes
	}
	at := int64(0)
	if stream == sandbox.Stderr {
		at = max(0, kept-look)
	}
	var data []byte
	for int64(len(data)) < min(look, kept-at) {
		part, err := h.Output(ctx, op.ID, stream, at+int64(len(data)), look)
		if err != nil {
			return "", err
		}
		if len(part) == 0 {
			break
		}
		data = append(data, part...)
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	if stream == sandbox.Stderr {
		return string(lines[len(lines)-1]), nil
	}
	return string(lines[0]), nil
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
	for line := range strings.Lines(string(data)) {
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
