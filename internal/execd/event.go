package execd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/internal/idle"
	"github.com/glassboxhq/glassbox/sandbox"
)

// event is one object of the stream. It is JSON and an empty line: clients
// know no "data:" before it.
type event struct {
	Type      string      `json:"type"`
	Text      string      `json:"text,omitempty"`
	Duration  int64       `json:"execution_time,omitempty"` // milliseconds
	Timestamp int64       `json:"timestamp"`
	Error     *eventError `json:"error,omitempty"`
}

type eventError struct {
	Name      string   `json:"ename"`
	Value     string   `json:"evalue"`
	Traceback []string `json:"traceback"`
}

// pingEvery is the time between two pings, as execd has it.
const pingEvery = 3 * time.Second

// events writes a stream of events. The answer begins with the first of them.
type events struct {
	mu    sync.Mutex
	head  http.Header
	begun bool
	stop  func() // the pings
	w     *bufio.Writer
	flush func() error
	err   error
}

func newEvents(w http.ResponseWriter, limit time.Duration) *events {
	e := &events{head: w.Header(), w: bufio.NewWriterSize(idle.Answer(w, limit), 64<<10), flush: http.NewResponseController(w).Flush}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { e.ping(ctx) })
	e.stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	return e
}

func (e *events) ping(ctx context.Context) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = e.send(&event{Type: "ping", Text: "pong"}) // the next event tells
		}
	}
}

// send writes events and sees that they go out.
func (e *events) send(list ...*event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	if !e.begun {
		e.begun = true
		e.head.Set("Content-Type", "text/event-stream")
		e.head.Set("Cache-Control", "no-cache")
		e.head.Set("X-Accel-Buffering", "no")
	}
	enc := json.NewEncoder(e.w)
	enc.SetEscapeHTML(false)
	now := time.Now().UnixMilli()
	for _, ev := range list {
		ev.Timestamp = now
		if e.err = enc.Encode(ev); e.err == nil { // which ends with one \n
			e.err = e.w.WriteByte('\n')
		}
		if e.err != nil {
			return e.err
		}
	}
	if e.err = e.w.Flush(); e.err == nil {
		e.err = e.flush()
	}
	return e.err
}

// refuse tells an error of what was not started: as an event, if events were
// written while it waited for its turn.
func (e *events) refuse(err error) error {
	e.stop()
	if !e.begun {
		return err
	}
	f := newFault(err)
	_ = e.send(&event{Type: "error", Error: &eventError{"CommandExecError", f.Message, []string{f.Code}}})
	return nil
}

// maxLine is where a line is cut, so that a program that never ends one does
// not fill the memory.
const maxLine = 16 << 20

// lines turns the bytes of one stream into events, a line each.
type lines struct {
	kind string
	held []byte // a line that has not ended
	cr   bool   // it ended with \r: a \n that follows belongs to it
}

// add returns the lines that end in data.
func (l *lines) add(data []byte) (list []*event) {
	for len(data) > 0 {
		if l.cr && data[0] == '\n' {
			data = data[1:]
		}
		l.cr = false
		i := bytes.IndexAny(data, "\r\n")
		if i < 0 {
			l.held = append(l.held, data...)
			if len(l.held) < maxLine {
				return list
			}
			rest := incomplete(l.held)
			list = append(list, l.line(l.held[:len(l.held)-rest]))
			l.held = append([]byte(nil), l.held[len(l.held)-rest:]...)
			return list
		}
		l.held = append(l.held, data[:i]...)
		list = append(list, l.line(l.held))
		l.cr = data[i] == '\r'
		l.held, data = l.held[:0], data[i+1:]
	}
	return list
}

// end returns the last line, if it had no end.
func (l *lines) end() []*event {
	if len(l.held) == 0 {
		return nil
	}
	return []*event{l.line(l.held)}
}

// line is an event without the line's end; an empty line is told as one.
// encoding/json puts U+FFFD for each byte that is not UTF-8.
func (l *lines) line(text []byte) *event {
	if len(text) == 0 {
		return &event{Type: l.kind, Text: "\n"}
	}
	return &event{Type: l.kind, Text: string(text)}
}

// incomplete is how many bytes at the end begin a character that goes on.
func incomplete(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if c := text[len(text)-n:]; utf8.RuneStart(c[0]) {
			if !utf8.FullRune(c) {
				return n
			}
			return 0
		}
	}
	return 0
}

// splitter is lines for both streams.
type splitter struct{ out, err lines }

func newSplitter() *splitter {
	return &splitter{lines{kind: "stdout"}, lines{kind: "stderr"}}
}

func (s *splitter) add(c sandbox.Chunk) []*event {
	if c.Stream == sandbox.Stderr {
		return s.err.add(c.Data)
	}
	return s.out.add(c.Data)
}

func (s *splitter) end() []*event { return append(s.out.end(), s.err.end()...) }
