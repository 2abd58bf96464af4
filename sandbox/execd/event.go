package execd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/glassboxhq/glassbox/sandbox"
)

// event is one object of a command's stream. It is JSON and an empty line;
// other services put "data:" before it, as a text/event-stream has it.
type event struct {
	Type      string      `json:"type"`
	Text      string      `json:"text"`
	Duration  int64       `json:"execution_time"` // milliseconds, of execution_complete
	Timestamp int64       `json:"timestamp"`      // milliseconds since 1970
	Error     *eventError `json:"error"`
}

type eventError struct {
	Name      string   `json:"ename"`
	Value     string   `json:"evalue"`
	Traceback []string `json:"traceback"`
}

// The types of events; others are of code, and passed over.
const (
	typeInit     = "init"
	typeStdout   = "stdout"
	typeStderr   = "stderr"
	typeError    = "error"
	typeComplete = "execution_complete"
)

// maxEvent bounds one event: a line of output is one, however long it is.
const maxEvent = 64 << 20

// events reads a stream of events.
type events struct{ r *bufio.Reader }

func newEvents(r io.Reader) *events { return &events{bufio.NewReaderSize(r, 64<<10)} }

// next returns the next event. An object that is an error, without a type, is
// one: execd writes it bare into a stream that has begun. The end of the
// stream is io.EOF.
func (e *events) next() (*event, error) {
	for {
		text, err := e.line()
		text = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(text), []byte("data:")))
		if len(text) == 0 || text[0] != '{' {
			if err != nil {
				return nil, err
			}
			continue // an empty line, or a field or a comment of an event stream
		}
		var both struct {
			event
			Code    string `json:"code"`
			Message string `json:"message"`
		}
		if jsonErr := json.Unmarshal(text, &both); jsonErr != nil {
			if err != nil {
				return nil, err // it was cut
			}
			return nil, &sandbox.Error{Op: "read events", Code: sandbox.CodeInterrupted, Message: "an event is no JSON"}
		}
		if both.Type == "" && (both.Code != "" || both.Message != "") {
			return nil, newFault(0, &answerFault{Code: both.Code, Message: both.Message})
		}
		return &both.event, nil
	}
}

// line reads a line of at most maxEvent bytes.
func (e *events) line() ([]byte, error) {
	var line []byte
	for {
		part, err := e.r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxEvent {
			return nil, &sandbox.Error{Op: "read events", Code: sandbox.CodeTooLarge, Message: "an event is longer than any may be"}
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// lineOf is the line of output that an event tells: its end is lost on the
// way, and an empty one is told as "\n". Whether the last line had an end is
// not known.
func lineOf(e *event) []byte {
	if e.Text == "\n" {
		return []byte("\n")
	}
	return append([]byte(e.Text), '\n')
}
