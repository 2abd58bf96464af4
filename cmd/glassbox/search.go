package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/sandbox"
)

// hit is an operation that holds what was looked for.
type hit struct {
	Sandbox   string             `json:"sandbox_id"`
	Name      string             `json:"sandbox_name,omitempty"`
	Operation *history.Operation `json:"operation"`
	Line      string             `json:"line"` // the first that holds it
}

func (a *app) historySearch() *cobra.Command {
	var f filterFlags
	var only string
	cmd := &cobra.Command{
		Use: "search TEXT", Short: "Find operations that hold a text, in every history or in one", Args: cobra.ExactArgs(1),
		Long: `Search looks for a text, without regard to the case of A to Z, in commands,
paths, requests, results and the kept output of every history that can be read,
and prints one line for each operation that holds it.`,
		Example: `  glassbox history search 'permission denied'
  glassbox history search curl --sandbox research --type command.execute --since 2h`,
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.read(cmd, time.Now())
			if err != nil {
				return err
			}
			if filter.Text = args[0]; filter.Text == "" {
				return usage("give a text to search for")
			}
			return a.search(cmd.Context(), filter, only)
		},
	}
	f.add(cmd)
	cmd.Flags().Lookup("search").Hidden = true // it is the argument
	cmd.Flags().StringVar(&only, "sandbox", "", "only in this `sandbox`")
	return cmd
}

func (a *app) search(ctx context.Context, filter history.Filter, only string) error {
	url, err := a.service(ctx)
	if err != nil {
		return err
	}
	list, err := a.histories(ctx, url)
	if err != nil {
		return err
	}
	if only != "" {
		i, err := pick(only, knownOf(list))
		if errors.Is(err, sandbox.ErrNotFound) {
			return noneCalled(only, "glassbox history list shows what is kept")
		}
		if err != nil {
			return err
		}
		list = []*localruntime.History{list[i]}
	}
	hits := []*hit{}
	faults := a.eachHistory(ctx, url, list, func(h *opened) error {
		return h.operations(ctx, filter, func(op *history.Operation) error {
			line, err := matching(ctx, h, op, filter.Text)
			hits = append(hits, &hit{h.ref.ID, h.ref.Name, op, line})
			return err
		})
	})
	err = a.print(hits, func(t *table) {
		if len(hits) > 0 {
			t.row("SANDBOX", "STARTED", "OPERATION", "WHAT", "LINE")
		}
		for _, hit := range hits {
			t.row(short(nameOf(hit), 24), moment(hit.Operation.StartedAt), hit.Operation.ID, short(whatOf(hit.Operation), 60), short(hit.Line, 160))
		}
	})
	if len(hits) == 0 && err == nil && a.flags.output == "table" {
		a.say("no operation holds %q", filter.Text)
	}
	return errors.Join(err, faults)
}

// nameOf is what people know a sandbox by.
func nameOf(h *hit) string {
	if h.Name != "" {
		return h.Name
	}
	return h.Sandbox[:min(8, len(h.Sandbox))]
}

// matching returns the first line of an operation that holds a text: of its
// output, else of its command, its request or its result.
func matching(ctx context.Context, h history.Reader, op *history.Operation, text string) (string, error) {
	if op.Command != nil {
		for _, stream := range []sandbox.Stream{sandbox.Stdout, sandbox.Stderr} {
			line, err := lineWith(ctx, h, op.ID, stream, []byte(text))
			if err != nil {
				return "", err
			}
			if line != "" {
				return fmt.Sprintf("%s: %s", stream, line), nil
			}
		}
	}
	for _, field := range []string{string(op.Request), string(op.Result)} {
		if line := around([]byte(field), []byte(text)); line != "" {
			return line, nil
		}
	}
	return "", nil
}

// errFound ends the reading of output.
var errFound = errors.New("found")

func lineWith(ctx context.Context, h history.Reader, opID string, stream sandbox.Stream, text []byte) (line string, err error) {
	var rest []byte // of the page before, which a match may begin in
	err = eachOutput(ctx, h, opID, stream, func(part []byte) error {
		data := append(rest, part...)
		if line = around(data, text); line != "" {
			return errFound
		}
		rest = bytes.Clone(data[max(0, len(data)-lineAround-len(text)):])
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return line, err
}

// lineAround bounds what of a long line is shown on either side, in bytes.
const lineAround = 40

// around returns the line that holds a text, cut where it is long.
func around(data, text []byte) string {
	at := bytes.Index(lower(data), lower(text))
	if at < 0 {
		return ""
	}
	from, to := max(0, at-lineAround), min(len(data), at+len(text)+lineAround)
	if i := bytes.LastIndexByte(data[from:at], '\n'); i >= 0 {
		from += i + 1
	}
	if i := bytes.IndexByte(data[at+len(text):to], '\n'); i >= 0 {
		to = at + len(text) + i
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(data[from:to]), ""))
}

// lower is the text without regard to the case of A to Z, byte for byte.
func lower(text []byte) []byte {
	text = bytes.Clone(text)
	for i, b := range text {
		if 'A' <= b && b <= 'Z' {
			text[i] = b + 'a' - 'A'
		}
	}
	return text
}
