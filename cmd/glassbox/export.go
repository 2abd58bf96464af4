package main

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// exported is an operation with its output: as text where it is UTF-8, else in
// base64.
type exported struct {
	*history.Operation
	Sandbox      string  `json:"sandbox_id"`
	Stdout       *string `json:"stdout,omitempty"`
	StdoutBase64 *string `json:"stdout_base64,omitempty"`
	Stderr       *string `json:"stderr,omitempty"`
	StderrBase64 *string `json:"stderr_base64,omitempty"`
}

func (a *app) historyExport() *cobra.Command {
	var f filterFlags
	var format string
	cmd := &cobra.Command{
		Use: "export [SANDBOX | OPERATION]", Short: "Write a sandbox's operations as JSON, with their whole output, or as CSV; or a terminal as asciicast", Args: cobra.MaximumNArgs(1),
		Long: `Export writes a sandbox's operations to stdout, oldest first, with all that is
kept of their output: as json (one list) or jsonl (one operation a line).
Output that is not UTF-8 is written in base64, as stdout_base64 or stderr_base64.

As csv it is a table for a spreadsheet, with one row an operation and without
output. A cell that a spreadsheet would run as a formula begins with a '.

As asciicast it writes what one terminal showed, named by its operation: version
2 of the format, which asciinema and its players play.`,
		Example: `  glassbox history export research > research.json
  glassbox history export research --format csv --status failed > failed.csv
  glassbox history export 01a2297b-622b-71b0-9a0c-eff735886781 --format asciicast > session.cast`,
		Annotations: map[string]string{ownOutput: "--format says the form of an export"},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := oneOf("format", format); err != nil {
				return err
			}
			filter, err := f.read(cmd, time.Now())
			if err != nil {
				return err
			}
			h, op, err := a.choose(cmd.Context(), first(args))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, h.close()) }()
			switch {
			case format == "asciicast":
				return a.exportCast(cmd.Context(), h, op)
			case op != nil:
				return usage("export takes a sandbox, not an operation")
			}
			if format == "csv" {
				return a.exportCSV(cmd.Context(), h, filter)
			}
			return a.export(cmd.Context(), h, filter, format == "json")
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&format, "format", "json", "`form` of the export: json, jsonl, csv or asciicast")
	return cmd
}

func (a *app) export(ctx context.Context, h *opened, filter history.Filter, list bool) error {
	before, between, after := "", "\n", "\n"
	if list {
		before, between, after = "[\n", ",\n", "\n]\n"
	}
	n := 0
	write := func(text string) { _, _ = a.page.Write([]byte(text)) }
	write(before)
	err := h.operations(ctx, filter, func(op *history.Operation) error {
		e := &exported{Operation: op, Sandbox: h.ref.ID}
		if err := e.load(ctx, h); err != nil {
			return err
		}
		line, err := lineOfJSON(e)
		if err != nil {
			return err
		}
		if n++; n > 1 {
			write(between)
		}
		write(strings.TrimSuffix(string(line), "\n"))
		return a.page.failed()
	})
	if err != nil || !list && n == 0 {
		return err
	}
	write(after)
	return nil
}

// exportCast writes what a terminal showed.
func (a *app) exportCast(ctx context.Context, h *opened, op *history.Operation) error {
	if op == nil {
		return usage("--format asciicast takes the id of a terminal.session; history show --type terminal.session tells it")
	}
	from, ok := h.Reader.(history.Recording)
	if !ok {
		return &sandbox.Error{Op: "export asciicast", Code: sandbox.CodeUnsupported, Message: "this history has no terminals"}
	}
	if err := history.WriteCast(ctx, a.page, from, op); err != nil {
		return err
	}
	return a.page.failed()
}

// load reads the output, which the cap of the history bounds.
func (e *exported) load(ctx context.Context, h history.Reader) error {
	if e.Command == nil {
		return nil
	}
	for _, s := range []struct {
		stream       sandbox.Stream
		text, base64 **string
	}{
		{sandbox.Stdout, &e.Stdout, &e.StdoutBase64},
		{sandbox.Stderr, &e.Stderr, &e.StderrBase64},
	} {
		var data []byte
		err := eachOutput(ctx, h, e.ID, s.stream, func(part []byte) error { data = append(data, part...); return nil })
		if err != nil {
			return err
		}
		text, to := string(data), s.text
		if !utf8.Valid(data) {
			text, to = base64.StdEncoding.EncodeToString(data), s.base64
		}
		*to = &text
	}
	return nil
}
