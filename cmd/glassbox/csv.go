package main

import (
	"context"
	"encoding/csv"
	"strconv"
	"strings"

	"github.com/glassboxhq/glassbox/history"
)

// csvColumns are the columns of an export as CSV, one operation a row.
var csvColumns = []string{
	"seq", "id", "sandbox_id", "type", "status", "source", "actor_type", "actor", "thread_id", "run_id", "correlation_id",
	"started_at", "completed_at", "duration_ms", "command", "cwd", "exit_code", "recording", "stdout_kept_bytes", "stderr_kept_bytes",
	"path", "old_path", "before_size", "after_size", "request", "result",
}

// exportCSV writes a table for spreadsheets: without output, which no cell
// takes.
func (a *app) exportCSV(ctx context.Context, h *opened, filter history.Filter) error {
	w := csv.NewWriter(a.page)
	_ = w.Write(csvColumns) // told by failed
	err := h.operations(ctx, filter, func(op *history.Operation) error {
		_ = w.Write(csvRow(h.ref.ID, op)) // told by failed
		w.Flush()
		return a.page.failed()
	})
	w.Flush()
	return err
}

func csvRow(sandboxID string, op *history.Operation) []string {
	moment := func(zero bool, text string) string {
		if zero {
			return ""
		}
		return text
	}
	row := []string{
		count(op.Seq), cell(op.ID), cell(sandboxID), cell(op.Type), cell(string(op.Status)), cell(op.Source),
		cell(op.Actor.Type), cell(op.Actor.ID), cell(op.Actor.Thread), cell(op.Actor.Run), cell(op.Actor.Correlation),
		moment(op.StartedAt.IsZero(), history.FormatTime(op.StartedAt)),
		moment(op.CompletedAt.IsZero(), history.FormatTime(op.CompletedAt)), count(op.DurationMS),
	}
	if c := op.Command; c != nil {
		exit := ""
		if c.ExitCode != nil {
			exit = strconv.Itoa(*c.ExitCode)
		}
		row = append(row, cell(c.Line), cell(c.Dir), exit, cell(string(c.Recording)), count(c.StdoutBytes), count(c.StderrBytes))
	} else {
		row = append(row, "", "", "", "", "", "")
	}
	if f := op.File; f != nil {
		row = append(row, cell(f.Path), cell(f.OldPath), sized(f.BeforeSize), sized(f.AfterSize))
	} else {
		row = append(row, "", "", "", "")
	}
	return append(row, cell(string(op.Request)), cell(string(op.Result)))
}

func sized(n *int64) string {
	if n == nil {
		return ""
	}
	return count(*n)
}

// cell makes a text safe for a spreadsheet, which runs what looks like a
// formula, and for a terminal.
func cell(s string) string {
	s = plainLines(s)
	if strings.ContainsAny(firstRune(s), "=+-@＝＋－＠\t\r") {
		return "'" + s
	}
	return s
}

func firstRune(s string) string {
	for i := range s {
		if i > 0 {
			return s[:i]
		}
	}
	return s
}
