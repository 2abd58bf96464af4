package wire_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

func TestFrames(t *testing.T) {
	at := time.UnixMicro(1_767_225_600_123_456).UTC()
	chunks := []sandbox.Chunk{
		{Stream: sandbox.Stdout, Offset: 0, Time: at, Data: []byte("a\n\n\xff b")},
		{Stream: sandbox.Stderr, Offset: 7, Time: at, Data: []byte("e")},
		{Stream: sandbox.Stdout, Offset: 1 << 40, Time: at, Data: []byte{}},
	}
	var b []byte
	for _, c := range chunks {
		b = wire.AppendChunk(b, c)
	}
	b = wire.AppendFrame(b, wire.FramePing, nil)
	r := wire.NewReader(bytes.NewReader(b))
	for _, want := range chunks {
		f, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Chunk()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("chunk (-want +got): %v\n%s", err, diff)
		}
	}
	if f, err := r.Next(); err != nil || f.Type != wire.FramePing {
		t.Errorf("got %v, %v, want a ping", f, err)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
	if _, err := wire.NewReader(bytes.NewReader(b[:len(b)-7])).Next(); err != nil {
		t.Errorf("the first frame of a cut stream: %v", err)
	}
	cut := wire.NewReader(bytes.NewReader(b[:10]))
	if _, err := cut.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut frame: got %v, want an unexpected end", err)
	}
}

// Whatever a sandbox sends, the reader says what is wrong, and takes no more
// memory than a frame may have.
func FuzzReader(f *testing.F) {
	f.Add(wire.AppendFrame(nil, wire.FrameExit, wire.EncodeResult(&sandbox.Result{})))
	f.Add(wire.AppendChunk(nil, sandbox.Chunk{Stream: sandbox.Stderr, Data: []byte("x")}))
	f.Add([]byte("o\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := wire.NewReader(bytes.NewReader(b))
		for {
			frame, err := r.Next()
			if err != nil {
				return
			}
			switch frame.Type {
			case wire.FrameStdout, wire.FrameStderr:
				c, err := frame.Chunk()
				if err == nil && !bytes.Equal(wire.AppendChunk(nil, c)[21:], frame.Payload[16:]) {
					t.Errorf("a chunk does not survive: %v", c)
				}
			case wire.FrameExit:
				if res, err := wire.DecodeResult(frame.Payload); err == nil && res == nil {
					t.Error("no result and no error")
				}
			case wire.FrameError:
				if e := wire.DecodeFault(200, frame.Payload); e == nil || e.Code == "" {
					t.Error("an error without a code")
				}
			}
		}
	})
}

func TestResult(t *testing.T) {
	want := &sandbox.Result{
		OperationID: "x", Status: sandbox.TimedOut, ExitCode: 137, Signal: "KILL", StdoutBytes: 1 << 40, StderrBytes: 2,
		StartedAt: time.Unix(1, 2000).UTC(), Duration: 1500 * time.Microsecond, Reason: "stopped at its timeout", Recording: sandbox.RecordedTruncated,
	}
	got, err := wire.DecodeResult(wire.EncodeResult(want))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("result (-want +got): %v\n%s", err, diff)
	}
}

func TestErrors(t *testing.T) {
	want := sandbox.Invalid("cwd", "does not exist")
	got := wire.DecodeFault(http.StatusBadRequest, wire.EncodeFault(want))
	if !errors.Is(got, sandbox.ErrInvalid) || got.Field != "cwd" || got.Error() != want.Error() {
		t.Errorf("got %v, want %v", got, want)
	}
	page := wire.DecodeFault(http.StatusBadGateway, []byte("<html>nginx</html>"))
	if page.Code != sandbox.CodeProvider || !page.Retryable || strings.Contains(page.Error(), "html") {
		t.Errorf("a proxy's page: got %v", page)
	}
}

func TestActorHeaders(t *testing.T) {
	want := history.Actor{Type: "agent", ID: "研究员", Thread: "a b", Run: "r/1", Correlation: "c%41", TraceParent: "00-ab-cd-01", Source: "sdk"}
	h := http.Header{}
	wire.SetActor(h, want)
	for name, values := range h {
		for _, c := range []byte(values[0]) {
			if c <= ' ' || c > '~' {
				t.Errorf("header %s is %q, which a proxy refuses", name, values[0])
			}
		}
	}
	got, err := wire.ReadActor(h)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("actor (-want +got): %v\n%s", err, diff)
	}
	for name, value := range map[string]string{"control": "%0a", "not UTF-8": "%ff", "half an escape": "%a", "long": strings.Repeat("x", 257)} {
		if _, err := wire.ReadActor(http.Header{wire.HeaderAgentID: {value}}); !errors.Is(err, sandbox.ErrInvalid) {
			t.Errorf("%s: got %v, want it refused", name, err)
		}
	}
}

func TestFilter(t *testing.T) {
	code := 0
	want := &history.Filter{
		Types: []string{"a", "b"}, Statuses: []sandbox.Status{sandbox.Unsuccessful}, Sources: []string{"sdk"},
		ActorType: "agent", ActorID: "研究员", Thread: "t", Run: "r", Correlation: "c",
		Since: time.Unix(5, 6).UTC(), Until: time.Unix(7, 8).UTC(), Path: "/a b&c=d", ExitCode: &code,
		Text: "100 %", After: 3, Before: 9, Limit: 17, Newest: true,
	}
	got, err := wire.DecodeFilter(wire.EncodeFilter(want))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("filter (-want +got): %v\n%s", err, diff)
	}
}

func TestPath(t *testing.T) {
	if got, want := wire.Path(wire.PathStdin, "../x"), "/glassbox/v1/commands/..%2Fx/stdin"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
