package historytest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// testOrder begins operations whose clock runs backwards: the order is that of
// the calls.
func testOrder(t *testing.T, open opener) {
	s := open(t)
	var want []string
	now := start()
	for n := range 10 {
		op := command(fmt.Sprint(n))
		op.StartedAt = now.Add(-time.Duration(n) * time.Minute)
		begin(t, s, op)
		want = append(want, op.ID)
	}
	got, _ := list(t, s, &history.Filter{})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
	var fed []string
	for _, change := range changes(t, s, 0, 0).Changes {
		fed = append(fed, change.Operation)
	}
	if diff := cmp.Diff(want, fed); diff != "" {
		t.Errorf("Changes (-want +got):\n%s", diff)
	}
}

func testOutput(t *testing.T, open opener) {
	s := open(t)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, tt := range []struct {
		name string
		data []byte
	}{
		{"empty", nil},
		{"newlines", []byte("a\n\n\r\nb\r")},
		{"no last newline", []byte("end")},
		{"Chinese", []byte("你好，世界\n")},
		{"every byte", all},
		{"invalid UTF-8", []byte("a\xff\xfe\xe4\xbd b\x00c")},
		{"1 MiB", bytes.Repeat([]byte("0123456789abcdef"), 1<<16)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			op := command(tt.name)
			begin(t, s, op)
			out := sandbox.Chunk{Stream: sandbox.Stdout, Time: start(), Data: tt.data}
			appendOutput(t, s, op.ID, out, stderr(0, "E"), stderr(1, "F"))
			wantOutput(t, s, op.ID, sandbox.Stdout, tt.data)
			tail := append(bytes.Clone(tt.data), tt.data...)
			out.Offset = int64(len(tt.data))
			end := &history.End{Status: sandbox.Succeeded, OutputComplete: true, Chunks: []sandbox.Chunk{out}}
			if err := s.Finish(t.Context(), op.ID, end); err != nil {
				t.Fatal(err)
			}
			wantOutput(t, s, op.ID, sandbox.Stdout, tail)
			wantOutput(t, s, op.ID, sandbox.Stderr, []byte("EF"))
		})
	}
	op := command("nothing")
	begin(t, s, op)
	appendOutput(t, s, op.ID)
	wantOutput(t, s, op.ID, sandbox.Stdout, nil)
}

func testOutputRange(t *testing.T, open opener) {
	s := open(t)
	op := command("ranges")
	begin(t, s, op)
	var whole []byte
	for n := range 20 {
		piece := strings.Repeat(string(rune('a'+n)), 1+n*1500)
		appendOutput(t, s, op.ID, stdout(int64(len(whole)), piece))
		whole = append(whole, piece...)
	}
	size := int64(len(whole))
	for _, tt := range []struct{ offset, length int64 }{
		{0, 0},
		{0, 1},
		{1, 1},
		{0, size},
		{size - 1, 1},
		{size - 1, 10},
		{size, 1},
		{size + 100, 1},
		{16<<10 - 1, 2},
		{16 << 10, 16 << 10},
		{1234, 77_777},
		{0, size * 10},
	} {
		got := readExactly(t, s, op.ID, tt.offset, tt.length)
		from := min(tt.offset, size)
		if want := whole[from:min(from+tt.length, size)]; !bytes.Equal(got, want) {
			t.Errorf("Output(%d, %d) gave %d bytes %.20q, want %d bytes %.20q", tt.offset, tt.length, len(got), got, len(want), want)
		}
	}
	if _, err := s.Output(t.Context(), op.ID, "stdlog", 0, 1); err == nil {
		t.Error("Output of a stream that does not exist gave no error")
	}
}

// readExactly asks again while the store gives less than it was asked for.
func readExactly(t *testing.T, s history.Store, id string, offset, length int64) []byte {
	t.Helper()
	var got []byte
	for int64(len(got)) < length {
		data, err := s.Output(t.Context(), id, sandbox.Stdout, offset+int64(len(got)), length-int64(len(got)))
		if err != nil {
			t.Fatalf("Output(%d, %d): %v", offset, length, err)
		}
		if len(data) == 0 {
			break
		}
		got = append(got, data...)
	}
	return got
}

func testFilter(t *testing.T, open opener) {
	s := open(t)
	a, b, c, d := command("one"), command("two"), file(history.FileWrite, "/workspace/src/a.go"), file(history.FileRead, "/workspace/src")
	e := file(history.FileDelete, "/workspace/src_old/a%_go")
	base := start().Add(-time.Hour)
	for n, op := range []*history.Operation{a, b, c, d, e} {
		op.StartedAt = base.Add(time.Duration(n) * time.Minute)
	}
	b.Actor = history.Actor{Type: history.User, ID: "研究员", Thread: "t-2", Run: "r-2", Correlation: "c-2"}
	b.Source = history.SourceConsole
	e.File.OldPath = "/workspace/former/x"
	begin(t, s, a, b, c, d, e)
	seven := 7
	if err := s.Finish(t.Context(), b.ID, &history.End{Status: sandbox.Unsuccessful, ExitCode: &seven}); err != nil {
		t.Fatal(err)
	}
	finish(t, s, c.ID, sandbox.Succeeded)

	for _, tt := range []struct {
		name   string
		filter history.Filter
		want   []*history.Operation
	}{
		{"none", history.Filter{}, []*history.Operation{a, b, c, d, e}},
		{"newest", history.Filter{Newest: true}, []*history.Operation{e, d, c, b, a}},
		{"type", history.Filter{Types: []string{history.FileWrite, history.FileRead}}, []*history.Operation{c, d}},
		{"status", history.Filter{Statuses: []sandbox.Status{sandbox.Unsuccessful, sandbox.Succeeded}}, []*history.Operation{b, c}},
		{"source", history.Filter{Sources: []string{history.SourceConsole}}, []*history.Operation{b}},
		{"actor type", history.Filter{ActorType: history.User}, []*history.Operation{b}},
		{"actor", history.Filter{ActorID: "研究员"}, []*history.Operation{b}},
		{"thread", history.Filter{Thread: "t-2"}, []*history.Operation{b}},
		{"run", history.Filter{Run: "run-1"}, []*history.Operation{a, c, d, e}},
		{"correlation", history.Filter{Correlation: "c-2"}, []*history.Operation{b}},
		{"since", history.Filter{Since: c.StartedAt}, []*history.Operation{c, d, e}},
		{"until", history.Filter{Until: c.StartedAt}, []*history.Operation{a, b}},
		{"path of a file", history.Filter{Path: "/workspace/src/a.go"}, []*history.Operation{c}},
		{"path of a directory", history.Filter{Path: "/workspace/src/"}, []*history.Operation{c, d}},
		{"former path", history.Filter{Path: "/workspace/former"}, []*history.Operation{e}},
		{"root", history.Filter{Path: "/"}, []*history.Operation{c, d, e}},
		{"path is literal", history.Filter{Path: "/workspace/src_old/a__go"}, nil},
		{"exit code", history.Filter{ExitCode: &seven}, []*history.Operation{b}},
		{"after", history.Filter{After: b.Seq}, []*history.Operation{c, d, e}},
		{"before", history.Filter{Before: b.Seq}, []*history.Operation{a}},
		{"all together", history.Filter{Types: []string{history.CommandExecute}, ExitCode: &seven, Run: "r-2", Text: "TWO"}, []*history.Operation{b}},
		{"nothing", history.Filter{Run: "run-1", ActorID: "研究员"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want []string
			for _, op := range tt.want {
				want = append(want, op.ID)
			}
			got, _ := list(t, s, &tt.filter)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("List (-want +got):\n%s", diff)
			}
		})
	}
}

func testPaging(t *testing.T, open opener) {
	s := open(t)
	var want []string
	for n := range 25 {
		op := command(fmt.Sprint("page ", n))
		begin(t, s, op)
		want = append(want, op.ID)
	}
	for _, text := range []string{"", "page"} {
		var got, back []string
		var after, before int64
		for more := true; more; {
			page, err := s.List(t.Context(), &history.Filter{Limit: 10, After: after, Text: text})
			if err != nil {
				t.Fatal(err)
			}
			for _, op := range page.Operations {
				got, after = append(got, op.ID), op.Seq
			}
			more = page.More
		}
		for more := true; more; {
			page, err := s.List(t.Context(), &history.Filter{Limit: 10, Before: before, Newest: true, Text: text})
			if err != nil {
				t.Fatal(err)
			}
			for _, op := range page.Operations {
				back, before = append([]string{op.ID}, back...), op.Seq
			}
			more = page.More
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pages, oldest first (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, back); diff != "" {
			t.Errorf("pages, newest first (-want +got):\n%s", diff)
		}
	}
	ids, more := list(t, s, &history.Filter{Limit: 25})
	if len(ids) != 25 || more {
		t.Errorf("a page that takes all gave %d, more %v", len(ids), more)
	}
	if ids, more = list(t, s, &history.Filter{}); len(ids) != 25 || more {
		t.Errorf("a page of the default size gave %d, more %v", len(ids), more)
	}
}

func testText(t *testing.T, open opener) {
	s := open(t)
	inCommand, inPath, inOutput, plain := command("echo Needle-50%_off"), file(history.FileRead, "/data/nEEdle.txt"), command("cat"), command("true")
	inResult, chinese := command("sh"), command("grep 错误 log")
	begin(t, s, inCommand, inPath, inOutput, plain, inResult, chinese)
	// The words are cut between chunks, and between calls.
	filler := strings.Repeat("x", 16<<10-3)
	appendOutput(t, s, inOutput.ID, stdout(0, filler), stdout(int64(len(filler)), "nee"))
	appendOutput(t, s, inOutput.ID, stdout(int64(len(filler)+3), "dle 警\xe5"), stdout(int64(len(filler)+11), "\x91\x8a."), stderr(0, "q\"uote"))
	end := &history.End{Status: sandbox.Succeeded, Result: history.Encode(map[string]any{"error": "say \"NEEDLE\"\n"})}
	if err := s.Finish(t.Context(), inResult.ID, end); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text string
		want []*history.Operation
	}{
		{"needle", []*history.Operation{inCommand, inPath, inOutput, inResult}},
		{"50%_OFF", []*history.Operation{inCommand}},
		{"50%xoff", nil},
		{"n%e", nil},
		{"needle_", nil},
		{"错误", []*history.Operation{chinese}},
		{"警告", []*history.Operation{inOutput}},
		{`q"uote`, []*history.Operation{inOutput}},
		{`say "needle"`, []*history.Operation{inResult}},
		{"absent", nil},
	} {
		t.Run(tt.text, func(t *testing.T) {
			var want []string
			for _, op := range tt.want {
				want = append(want, op.ID)
			}
			got, _ := list(t, s, &history.Filter{Text: tt.text})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("List (-want +got):\n%s", diff)
			}
		})
	}
}

func testFeed(t *testing.T, open opener) {
	s := open(t)
	op := command("feed")
	begin(t, s, op)
	appendOutput(t, s, op.ID, stdout(0, "a"), stderr(0, "b"))
	finish(t, s, op.ID, sandbox.Succeeded)
	other := command("other")
	begin(t, s, other)

	whole := changes(t, s, 0, 0)
	var got []string
	var last int64
	for _, change := range whole.Changes {
		got = append(got, change.Operation+" "+change.Type)
		if change.Seq <= last || change.ID == "" || change.At.IsZero() {
			t.Errorf("change %+v follows seq %d", change, last)
		}
		last = change.Seq
	}
	want := []string{
		op.ID + " created", op.ID + " output_appended", op.ID + " completed", other.ID + " created",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Changes (-want +got):\n%s", diff)
	}
	if whole.Next != last || whole.Max != last || whole.Min != whole.Changes[0].Seq || whole.Reset {
		t.Errorf("Changes has next %d, min %d, max %d, reset %v", whole.Next, whole.Min, whole.Max, whole.Reset)
	}
	// Read one by one, it is the same feed.
	var single []*history.Change
	for after := int64(0); ; {
		feed := changes(t, s, after, 1)
		if len(feed.Changes) == 0 {
			break
		}
		single = append(single, feed.Changes...)
		after = feed.Next
	}
	if diff := cmp.Diff(whole.Changes, single); diff != "" {
		t.Errorf("Changes one by one (-whole +single):\n%s", diff)
	}
}

func testFeedReset(t *testing.T, open opener) {
	s := open(t)
	begin(t, s, command("only"))
	end := changes(t, s, 0, 0).Next
	if feed := changes(t, s, end, 0); feed.Reset || len(feed.Changes) > 0 || feed.Next != end {
		t.Errorf("at the end: %+v", feed)
	}
	feed, err := s.Changes(t.Context(), &history.ChangeQuery{After: end + 1000, Wait: time.Minute})
	if err != nil || !feed.Reset {
		t.Errorf("beyond the end: %+v, %v, want a reset at once", feed, err)
	}
}

func testFeedWait(t *testing.T, open opener) {
	s := open(t)
	begun := time.Now()
	feed, err := s.Changes(t.Context(), &history.ChangeQuery{Wait: 50 * time.Millisecond})
	if err != nil || len(feed.Changes) > 0 || time.Since(begun) < 50*time.Millisecond {
		t.Errorf("nothing came: %+v, %v after %s", feed, err, time.Since(begun))
	}

	got := make(chan *history.Feed)
	go func() {
		feed, _ := s.Changes(context.WithoutCancel(t.Context()), &history.ChangeQuery{Wait: 30 * time.Second})
		got <- feed
	}()
	op := command("wake")
	begin(t, s, op)
	select {
	case feed := <-got:
		if feed == nil || len(feed.Changes) == 0 || feed.Changes[0].Operation != op.ID {
			t.Errorf("a waiting reader got %+v", feed)
		}
	case <-time.After(10 * time.Second):
		t.Error("a waiting reader was not woken")
	}

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = s.Changes(ctx, &history.ChangeQuery{After: changes(t, s, 0, 0).Next, Wait: 30 * time.Second})
	wantKind(t, "Changes of a caller whose time is over", err, sandbox.ErrTimeout)
}
