package history_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

func TestMatch(t *testing.T) {
	zero, nine := 0, 9
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	op := &history.Operation{
		Type: history.CommandExecute, Status: sandbox.Unsuccessful, Source: "sdk", StartedAt: at,
		Actor:   history.Actor{Type: "agent", ID: "a", Thread: "t", Run: "r", Correlation: "c"},
		Request: []byte(`{"command":"Make"}`), Result: []byte(`{"exit_code":9}`),
		Command: &history.Command{ExitCode: &nine}, File: &history.File{Path: "/w/dir/f", OldPath: "/w/former/f"},
	}
	for _, tt := range []struct {
		name   string
		filter history.Filter
		want   bool
	}{
		{"nothing asked", history.Filter{}, true},
		{"type", history.Filter{Types: []string{"x", history.CommandExecute}}, true},
		{"other type", history.Filter{Types: []string{"x"}}, false},
		{"status", history.Filter{Statuses: []sandbox.Status{sandbox.Succeeded}}, false},
		{"source", history.Filter{Sources: []string{"sdk"}}, true},
		{"actor", history.Filter{ActorType: "agent", ActorID: "a", Thread: "t", Run: "r", Correlation: "c"}, true},
		{"other run", history.Filter{ActorID: "a", Run: "x"}, false},
		{"since is included", history.Filter{Since: at}, true},
		{"until is not", history.Filter{Until: at}, false},
		{"path", history.Filter{Path: "/w/dir/f"}, true},
		{"folder", history.Filter{Path: "/w/dir/"}, true},
		{"former folder", history.Filter{Path: "/w/former"}, true},
		{"beginning of a name", history.Filter{Path: "/w/di"}, false},
		{"exit code", history.Filter{ExitCode: &nine}, true},
		{"other exit code", history.Filter{ExitCode: &zero}, false},
		{"text of any case", history.Filter{Text: "mAKE"}, true},
		{"other text", history.Filter{Text: "cmake"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.filter.Match(op); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestWithActor(t *testing.T) {
	if got := history.ActorFrom(t.Context()); got != (history.Actor{Type: history.System}) {
		t.Errorf("outside a scope: got %+v, want the system", got)
	}
	outer := history.WithActor(t.Context(), history.Actor{ID: "a", Run: "r"})
	first := history.ActorFrom(outer)
	if first.Type != history.Agent || len(first.Correlation) != 36 {
		t.Errorf("got %+v, want an agent with a correlation id", first)
	}
	inner := history.ActorFrom(history.WithActor(outer, history.Actor{ID: "b"}))
	if inner.ID != "b" || inner.Run != "r" || inner.Correlation != first.Correlation {
		t.Errorf("nested: got %+v, want the scope around it", inner)
	}
	user := history.ActorFrom(history.WithActor(outer, history.Actor{Type: history.User, Correlation: "own"}))
	if user.Type != history.User || user.Correlation != "own" {
		t.Errorf("got %+v, want what was given", user)
	}
}

func TestActorValidate(t *testing.T) {
	for name, actor := range map[string]history.Actor{
		"long": {ID: strings.Repeat("x", 257)}, "control": {Thread: "a\nb"}, "not UTF-8": {Run: "\xff"},
	} {
		if err := actor.Validate(); !errors.Is(err, sandbox.ErrInvalid) {
			t.Errorf("%s: got %v, want it refused", name, err)
		}
	}
	ok := history.Actor{ID: "研究员", Correlation: strings.Repeat("x", 256)}
	if err := ok.Validate(); err != nil {
		t.Error(err)
	}
}

func TestCodec(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.FixedZone("", 3600))
	if got, want := history.FormatTime(at), "2026-01-02T02:04:05.600000Z"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, text := range []string{"2026-01-02T02:04:05.600000Z", "2026-01-02T02:04:05.6Z", "2026-01-02T02:04:05.600000+00:00"} {
		if got, err := history.ParseTime(text); err != nil || !got.Equal(at) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, at)
		}
	}
	if _, err := history.ParseTime("yesterday"); !errors.Is(err, sandbox.ErrHistory) {
		t.Errorf("got %v, want an error of the history", err)
	}
	request := history.EncodeRequest(map[string]any{"b": "<研究>&", "a": 1})
	if got, want := string(request), `{"a":1,"b":"<研究>&","recorder":1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !history.Ours(request) || history.Ours([]byte(`{"command":"x"}`)) || history.Ours([]byte("junk")) {
		t.Error("our own requests are not told from others")
	}
}

func TestBroken(t *testing.T) {
	cause := &sandbox.Error{Code: sandbox.CodeHistoryCorrupt, Message: "x"}
	s := history.Broken(cause)
	ctx := context.Background()
	for name, err := range map[string]error{
		"begin": s.Begin(ctx, nil), "append": s.Append(ctx, "", nil), "finish": s.Finish(ctx, "", nil), "import": s.Import(ctx, nil),
	} {
		if !errors.Is(err, sandbox.ErrHistory) {
			t.Errorf("%s: got %v, want the cause", name, err)
		}
	}
}
