package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/sandbox"
)

func (a *app) historyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "history", Short: "List, show, follow, search and export what was done in sandboxes",
		Long: `History reads the records of sandboxes. On this machine, the record of a
sandbox that was deleted is kept for seven days.`,
	}
	cmd.AddCommand(a.historyList(), a.historyShow(), a.historyFollow(), a.historySearch(), a.historyExport(), a.historyPrune(), a.historyConfig())
	return cmd
}

func (a *app) historyList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the histories that can be read, newest first", Aliases: []string{"ls"}, Args: cobra.NoArgs,
		Long: `List shows the sandboxes whose history can be read: on this machine all that
live and those that were deleted within seven days, with --url those that live
there. Between them stand creations of this user that made no sandbox, or of
which that is not known, under the id of their operation.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := a.service(cmd.Context())
			if err != nil {
				return err
			}
			list, err := a.histories(cmd.Context(), url)
			if err != nil {
				return err
			}
			answer := struct {
				Histories []*localruntime.History `json:"histories"`
				Creations []*history.Operation    `json:"creations"` // that made none, or of which that is not known
			}{some(list), a.pending("")}
			if url == glassbox.Local && a.flags.output == "table" && len(list)+len(answer.Creations) == 0 {
				a.say("nothing is kept in %s yet", a.settings.stateDir)
			}
			return a.print(answer, func(t *table) {
				t.row("SANDBOX", "NAME", "STATE", "CREATED", "KEPT UNTIL")
				for _, row := range listed(list, answer.Creations) {
					t.row(row.columns...)
				}
			})
		},
	}
}

// listedRow is a row of the list, with the moment by which it is put in order.
type listedRow struct {
	at      time.Time
	columns []string
}

// listed puts histories, and creations without one, in one order: the newest
// first. A creation is named by the id of its operation.
func listed(list []*localruntime.History, creations []*history.Operation) []listedRow {
	var rows []listedRow
	for _, ref := range list {
		rows = append(rows, listedRow{ref.Created, []string{ref.ID, short(ref.Name, 40), string(ref.State), moment(ref.Created), keptUntil(ref)}})
	}
	for _, op := range creations {
		var asked struct{ Name, Image string }
		_ = json.Unmarshal(op.Request, &asked) // it may come from anybody
		if asked.Name == "" {
			asked.Name = asked.Image
		}
		rows = append(rows, listedRow{op.StartedAt, []string{op.ID, short(asked.Name, 40), "creation " + string(op.Status), moment(op.StartedAt), "-"}})
	}
	slices.SortStableFunc(rows, func(a, b listedRow) int { return b.at.Compare(a.at) })
	return rows
}

// filterFlags pick operations.
type filterFlags struct {
	filter       history.Filter
	statuses     []string
	since, until string
	exit         int
}

func (f *filterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.filter.Types, "type", nil, "only operations of this `type`, as command.execute")
	flags.StringArrayVar(&f.statuses, "status", nil, "only with this `status`: started, succeeded, failed, cancelled, timeout, unknown")
	flags.StringArrayVar(&f.filter.Sources, "source", nil, "only through this `door`: sdk, console, gateway, mcp, execd, lifecycle, proxy, recorder")
	flags.StringVar(&f.filter.ActorType, "actor-type", "", "only by an actor of this `type`: agent, user, system")
	flags.StringVar(&f.filter.ActorID, "actor", "", "only by this actor `id`")
	flags.StringVar(&f.filter.Thread, "thread", "", "only of this thread `id`")
	flags.StringVar(&f.filter.Run, "run-id", "", "only of this agent run `id`")
	flags.StringVar(&f.filter.Correlation, "correlation", "", "only with this correlation `id`")
	flags.StringVar(&f.since, "since", "", "only begun at or after this `time`, as 2026-01-31T12:00:00Z or 90m for so long ago")
	flags.StringVar(&f.until, "until", "", "only begun before this `time`")
	flags.StringVar(&f.filter.Path, "path", "", "only on this `file` or below this folder")
	flags.StringVarP(&f.filter.Text, "search", "s", "", "only with this `text` in command, path, request, result or output")
	flags.IntVar(&f.exit, "exit-code", 0, "only commands with this exit `code`")
	flags.IntVarP(&f.filter.Limit, "limit", "n", 0, "only the last `n`")
}

func (f *filterFlags) read(cmd *cobra.Command, now time.Time) (history.Filter, error) {
	filter := f.filter
	for _, status := range f.statuses {
		if err := oneOf("status", status); err != nil {
			return filter, err
		}
		filter.Statuses = append(filter.Statuses, sandbox.Status(status))
	}
	if cmd.Flags().Changed("actor-type") {
		if err := oneOf("actor-type", filter.ActorType); err != nil {
			return filter, err
		}
	}
	if cmd.Flags().Changed("exit-code") {
		filter.ExitCode = &f.exit
	}
	if cmd.Flags().Changed("limit") && filter.Limit < 1 {
		return filter, usage("--limit must be at least 1; without it all are meant")
	}
	for text, to := range map[*string]*time.Time{&f.since: &filter.Since, &f.until: &filter.Until} {
		if *text == "" {
			continue
		}
		t, err := parseTime(*text, now)
		if err != nil {
			return filter, err
		}
		*to = t
	}
	return filter, nil
}

func parseTime(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usage("%q is no time; give it as 2026-01-31T12:00:00Z, 2026-01-31 12:00, or 90m for so long ago", text)
}

func (a *app) historyShow() *cobra.Command {
	var f filterFlags
	var stdout, stderr bool
	cmd := &cobra.Command{
		Use:   "show [SANDBOX | OPERATION]",
		Short: "Show a sandbox's timeline, or one operation",
		Long: `Show prints the timeline of a sandbox: of the newest, or of the one that is
named by its id, the beginning of its id, or its name. With the id of an
operation, or its first characters (8 or more), it shows that one; --stdout and --stderr write the recorded bytes as
they were, and nothing else.`,
		Example: `  glassbox history show
  glassbox history show research --status failed --since 2h
  glassbox history show 01939f3e-7c1e
  glassbox history show 01939f3e-7c1e-7b1a-8f43-3b0d1a2c4d5e --stdout | xxd`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
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
			case op == nil && (stdout || stderr):
				return usage("--stdout and --stderr are for one operation; give its id")
			case stdout && stderr:
				return usage("--stdout and --stderr exclude each other")
			case stdout:
				return a.raw(cmd.Context(), h, op, sandbox.Stdout)
			case stderr:
				return a.raw(cmd.Context(), h, op, sandbox.Stderr)
			case op != nil:
				return a.showOperation(cmd.Context(), h, op)
			}
			return a.showTimeline(cmd.Context(), h, filter)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&stdout, "stdout", false, "write the operation's recorded stdout")
	cmd.Flags().BoolVar(&stderr, "stderr", false, "write the operation's recorded stderr")
	return cmd
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// raw writes the recorded bytes of a stream.
func (a *app) raw(ctx context.Context, h history.Reader, op *history.Operation, stream sandbox.Stream) error {
	if op.Command == nil {
		return usage("operation %s is a %s, which has no output", op.ID, op.Type)
	}
	err := eachOutput(ctx, h, op.ID, stream, func(data []byte) error {
		_, _ = a.page.Write(data)
		return a.page.failed()
	})
	if err = errors.Join(err, a.page.flush()); err != nil {
		return err
	}
	if text := missing(op.Command, outcomeOf(op)); text != "" {
		a.say("%s", text)
	}
	return nil
}

const outputPage = 1 << 20

func eachOutput(ctx context.Context, h history.Reader, opID string, stream sandbox.Stream, each func([]byte) error) error {
	for at := int64(0); ; {
		data, err := h.Output(ctx, opID, stream, at, outputPage)
		if err != nil || len(data) == 0 {
			return err
		}
		if err := each(data); err != nil {
			return err
		}
		at += int64(len(data))
	}
}

func (a *app) historyPrune() *cobra.Command {
	return &cobra.Command{
		Use: "prune SANDBOX", Short: "Delete what has expired of a sandbox's history or, if its policy is delete_oldest, is over its size", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, _, err := a.choose(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, h.close()) }()
			pruner, ok := h.Reader.(history.Pruner)
			if !ok || !h.ref.Live {
				return usage("sandbox %s is gone; its history is removed whole when its retention is over", h.ref.ID)
			}
			pruned, err := pruner.Prune(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(pruned, func(t *table) {
				t.row("DELETED OPERATIONS", "BYTES IN USE", "REASON")
				t.row(count(pruned.Operations), count(pruned.Bytes), pruned.Reason)
			})
		},
	}
}
