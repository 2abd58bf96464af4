package glassbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// save brings the history of a sandbox that is to be deleted to where it stays:
// to those who read it, and into the archive. What keeps the readers from it is
// no fault of the sandbox's owner.
func (b *Sandbox) save(ctx context.Context) error {
	o := b.service.opts
	if o.HistoryMode == NoHistory {
		return nil
	}
	if o.ConsumerWait > 0 {
		b.awaitConsumers(ctx, o.ConsumerWait)
	}
	var err error
	switch {
	case o.Archive != nil:
		err = b.copyInto(ctx, o.Archive)
	case o.ArchiveDir != "":
		err = b.writeArchive(ctx, o.ArchiveDir)
	}
	if err == nil || errors.Is(err, sandbox.ErrUnsupported) || errors.Is(err, sandbox.ErrNotFound) {
		return nil // there is no history, or no sandbox any more
	}
	return &sandbox.Error{
		Op: "close sandbox", Code: sandbox.CodeHistory, Sandbox: b.ID(), Err: err,
		Message: "its history could not be saved, so the sandbox is still there; Delete ends it",
	}
}

// awaitConsumers waits until every active consumer has read what there is.
func (b *Sandbox) awaitConsumers(ctx context.Context, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for wait := readyMin; ; wait = min(2*wait, readyMax) {
		behind, err := b.behind(ctx)
		if err != nil || !behind {
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// behind reports whether a consumer has not read all.
func (b *Sandbox) behind(ctx context.Context) (bool, error) {
	list, err := b.History().Consumers(ctx)
	if err != nil || len(list) == 0 {
		return false, err
	}
	feed, err := b.History().Changes(ctx, &history.ChangeQuery{Limit: 1})
	if err != nil {
		return false, err
	}
	for _, c := range list {
		if c.Acknowledged < feed.Max {
			return true, nil
		}
	}
	return false, nil
}

// eachOperation calls do for every operation, oldest first.
func (b *Sandbox) eachOperation(ctx context.Context, do func(*Operation) error) error {
	for filter := (history.Filter{}); ; {
		page, err := b.History().List(ctx, &filter)
		if err != nil {
			return err
		}
		for _, op := range page.Operations {
			if err := do(op); err != nil {
				return err
			}
			filter.After = op.Seq
		}
		if !page.More || len(page.Operations) == 0 {
			return nil
		}
	}
}

// archivePiece is how much output is asked for at once.
const archivePiece = 1 << 20

// eachOutput calls do for what is kept of an operation's output.
func (b *Sandbox) eachOutput(ctx context.Context, op *Operation, stream sandbox.Stream, do func(at int64, data []byte) error) error {
	for at := int64(0); op.Command != nil; {
		data, err := b.History().Output(ctx, op.ID, stream, at, archivePiece)
		if err != nil || len(data) == 0 {
			return err
		}
		if err := do(at, data); err != nil {
			return err
		}
		at += int64(len(data))
	}
	return nil
}

// copyInto copies the history into a store.
func (b *Sandbox) copyInto(ctx context.Context, to history.Writer) error {
	return b.eachOperation(ctx, func(op *Operation) error {
		if op.Command == nil || op.Command.StdoutBytes+op.Command.StderrBytes == 0 && history.Final(op.Status) {
			return to.Import(ctx, op)
		}
		begun, command := *op, *op.Command
		command.ExitCode, begun.Command = nil, &command
		begun.Status, begun.CompletedAt, begun.Duration, begun.Result = sandbox.Started, time.Time{}, 0, nil
		if err := to.Begin(ctx, &begun); err != nil && !errors.Is(err, sandbox.ErrExists) {
			return err
		}
		for _, stream := range []sandbox.Stream{sandbox.Stdout, sandbox.Stderr} {
			err := b.eachOutput(ctx, op, stream, func(at int64, data []byte) error {
				return to.Append(ctx, op.ID, []sandbox.Chunk{{Stream: stream, Offset: at, Data: data, Time: op.StartedAt}})
			})
			if err != nil {
				return err
			}
		}
		if !history.Final(op.Status) {
			return nil
		}
		return to.Finish(ctx, op.ID, &history.End{
			Status: op.Status, At: op.CompletedAt, Result: op.Result, ExitCode: op.Command.ExitCode,
			OutputComplete: op.Command.OutputComplete, Recording: op.Command.Recording,
		})
	})
}

// archived is a line of an archive, in the form of `glassbox history export`:
// output is text where it is UTF-8, else in base64.
type archived struct {
	*Operation
	Sandbox      string `json:"sandbox_id"`
	Stdout       string `json:"stdout,omitempty"`
	StdoutBase64 []byte `json:"stdout_base64,omitempty"`
	Stderr       string `json:"stderr,omitempty"`
	StderrBase64 []byte `json:"stderr_base64,omitempty"`
}

// writeArchive writes the history into a folder, whole or not at all.
func (b *Sandbox) writeArchive(ctx context.Context, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, temporary+"*")
	if err != nil {
		return err
	}
	err = errors.Join(b.writeLines(ctx, f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, b.ID()+".jsonl"))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func (b *Sandbox) writeLines(ctx context.Context, w io.Writer) error {
	lines := json.NewEncoder(w)
	return b.eachOperation(ctx, func(op *Operation) error {
		line := &archived{Operation: op, Sandbox: b.ID()}
		for stream, at := range map[sandbox.Stream]struct {
			text *string
			raw  *[]byte
		}{sandbox.Stdout: {&line.Stdout, &line.StdoutBase64}, sandbox.Stderr: {&line.Stderr, &line.StderrBase64}} {
			var all []byte
			err := b.eachOutput(ctx, op, stream, func(_ int64, data []byte) error { all = append(all, data...); return nil })
			if err != nil {
				return err
			}
			if utf8.Valid(all) {
				*at.text = string(all)
			} else {
				*at.raw = all
			}
		}
		return lines.Encode(line)
	})
}
