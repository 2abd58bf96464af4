package record_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The output of these commands is cut at a small cap, so that little needs to
// be printed to go beyond it.
const cap64K = 64 << 10

func noisy(bytes string) *sandbox.Command {
	return &sandbox.Command{ID: id.New(), Line: "head -c " + bytes + " /dev/zero | tr '\\0' y", MaxOutput: 32 << 20}
}

func TestCap(t *testing.T) {
	s, store := newSession(t, &record.Options{MaxOutput: cap64K, Spool: t.TempDir()})
	for _, tt := range []struct {
		name, size string
		kept       int64
		want       sandbox.Recording
	}{
		{"below", "65535", 65535, sandbox.RecordedWhole},
		{"exactly", "65536", 65536, sandbox.RecordedWhole},
		{"one over", "65537", 65536, sandbox.RecordedTruncated},
		{"far over", "9000000", 65536, sandbox.RecordedTruncated},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := noisy(tt.size)
			res, err := s.Run(t.Context(), cmd)
			if err != nil {
				t.Fatal(err)
			}
			if got := bytes.Count(res.Stdout, []byte("y")); int64(got) != res.StdoutBytes || res.Truncated || res.Recording != tt.want {
				t.Errorf("client: got %d of %d bytes, recording %s, want all and %s", got, res.StdoutBytes, res.Recording, tt.want)
			}
			op, err := store.Get(t.Context(), cmd.ID)
			if err != nil {
				t.Fatal(err)
			}
			if op.Command.StdoutBytes != tt.kept || op.Command.Recording != tt.want {
				t.Errorf("history: got %d bytes, %s, want %d, %s", op.Command.StdoutBytes, op.Command.Recording, tt.kept, tt.want)
			}
			if want := `"stdout_total_bytes":` + tt.size; !strings.Contains(string(op.Result), want) {
				t.Errorf("result is %s, want %s in it", op.Result, want)
			}
		})
	}
}

// A client that stops reading finds all of it later, as long as the spool
// holds it.
func TestSlowClient(t *testing.T) {
	s, _ := newSession(t, &record.Options{MaxOutput: cap64K, Spool: t.TempDir(), SpoolBytes: 32 << 20})
	p, err := s.Start(t.Context(), noisy("20000000"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Wait(t.Context()); err != nil { // ends although nothing was read
		t.Fatal(err)
	}
	n, err := drain(t.Context(), p)
	if err != nil || n != 20_000_000 {
		t.Errorf("got %d bytes, %v, want 20000000", n, err)
	}
}

// One that holds the command up for too long is let go, and the command ends;
// what it missed is named when it comes back.
func TestStalledClient(t *testing.T) {
	s, _ := newSession(t, &record.Options{
		MaxOutput: cap64K, Spool: t.TempDir(), SpoolBytes: 1 << 20, SlowClient: 100 * time.Millisecond,
	})
	cmd := noisy("30000000")
	stalled, err := s.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer stalled.Close()
	watcher, err := s.Attach(t.Context(), cmd.ID, sandbox.Offsets{})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	if n, err := drain(t.Context(), watcher); err != nil || n != 30_000_000 {
		t.Errorf("FB-007 the other watcher: got %d bytes, %v, want all", n, err)
	}
	if _, err := drain(t.Context(), stalled); !errors.Is(err, sandbox.ErrInterrupted) {
		t.Errorf("the stalled client: got %v, want to be told that it was detached", err)
	}
	back, err := s.Attach(t.Context(), cmd.ID, sandbox.Offsets{Stdout: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	_, err = drain(t.Context(), back)
	if !errors.Is(err, sandbox.ErrOutputGone) || !strings.Contains(err.Error(), "bytes 100000 to ") {
		t.Errorf("got %v, want the range that is gone", err)
	}
	tail, err := s.Attach(t.Context(), cmd.ID, sandbox.Offsets{Stdout: 29_500_000})
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Close()
	if n, err := drain(t.Context(), tail); err != nil || n != 500_000 {
		t.Errorf("the tail: got %d bytes, %v, want 500000", n, err)
	}
}

func TestNobodyAttached(t *testing.T) {
	s, store := newSession(t, &record.Options{MaxOutput: cap64K, Spool: t.TempDir(), SpoolBytes: 1 << 20})
	cmd := noisy("10000000")
	cmd.Detached = true
	p, err := s.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	op := waitEnd(t, store, cmd.ID)
	if op.Status != sandbox.Succeeded || op.Command.StdoutBytes != cap64K || op.Command.Recording != sandbox.RecordedTruncated {
		t.Errorf("got %+v, want it to end with the cap kept", op.Command)
	}
}

// A command whose client is lost goes on for a while, and is then stopped.
func TestAbandoned(t *testing.T) {
	s, store := newSession(t, nil)
	cmd := &sandbox.Command{ID: id.New(), Line: "sleep 60"}
	p, err := s.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	leave := p.(interface{ Leave(time.Duration) }).Leave
	leave(time.Hour)
	back, err := s.Attach(t.Context(), cmd.ID, sandbox.Offsets{})
	if err != nil {
		t.Fatal(err)
	}
	back.(interface{ Leave(time.Duration) }).Leave(10 * time.Millisecond)
	op := waitEnd(t, store, cmd.ID)
	if op.Status != sandbox.Cancelled || !strings.Contains(string(op.Result), "client was gone") {
		t.Errorf("got %s, %s, want it cancelled for want of a client", op.Status, op.Result)
	}
}

func TestRecordOutlivesCaller(t *testing.T) {
	s, store := newSession(t, nil)
	cmd := &sandbox.Command{ID: id.New(), Line: "echo one; sleep 0.3; echo two", Detached: true}
	ctx, cancel := context.WithCancel(t.Context())
	p, err := s.Start(ctx, cmd)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	cancel()
	op := waitEnd(t, store, cmd.ID)
	out, err := store.Output(t.Context(), cmd.ID, sandbox.Stdout, 0, 100)
	if err != nil || string(out) != "one\ntwo\n" || op.Status != sandbox.Succeeded {
		t.Errorf("got %s with %q, %v, want the whole record", op.Status, out, err)
	}
}

// waitEnd follows the feed until an operation has ended.
func waitEnd(t *testing.T, store history.Store, opID string) *history.Operation {
	t.Helper()
	query := &history.ChangeQuery{Wait: 10 * time.Second}
	for {
		feed, err := store.Changes(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		if len(feed.Changes) == 0 {
			t.Fatalf("operation %s did not end in time", opID)
		}
		for _, c := range feed.Changes {
			if c.Operation == opID && c.Type == history.Completed {
				op, err := store.Get(t.Context(), opID)
				if err != nil {
					t.Fatal(err)
				}
				return op
			}
		}
		query.After = feed.Next
	}
}

func drain(ctx context.Context, p sandbox.Process) (int64, error) {
	var n int64
	for {
		c, err := p.Next(ctx)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		n += int64(len(c.Data))
	}
}
