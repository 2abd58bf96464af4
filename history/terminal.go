package history

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// TerminalEvent is one moment of a terminal. What is shown is the output of
// its operation, in order: an event tells how much of it came at that moment.
type TerminalEvent struct {
	At     time.Duration         // since the operation began
	Shown  int64                 // bytes of output
	Typed  string                // by a client
	Hidden int                   // bytes typed that the terminal did not show, as of a password
	Size   *sandbox.TerminalSize // from here on
}

// TerminalStore is a Store that keeps the moments of terminals.
type TerminalStore interface {
	// AppendTerminal adds moments to an operation that runs, in order.
	AppendTerminal(ctx context.Context, id string, events []TerminalEvent) error
	TerminalReader
}

// TerminalReader reads the moments of terminals.
type TerminalReader interface {
	// Terminal returns the moments of a terminal, as far as they are kept.
	Terminal(ctx context.Context, id string) ([]TerminalEvent, error)
}

// Terminal moments are kept and sent as lines of JSON, [time, kind, value]: the
// time in microseconds, and by kind "o" a number of bytes shown, "i" text
// typed, "h" a number of hidden bytes typed, "r" a size as in "80x24".

// EncodeTerminal writes moments as lines.
func EncodeTerminal(events []TerminalEvent) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, e := range events {
		line := []any{e.At.Microseconds(), "o", e.Shown}
		switch {
		case e.Size != nil:
			line[1], line[2] = "r", sizeText(*e.Size)
		case e.Typed != "":
			line[1], line[2] = "i", e.Typed
		case e.Hidden > 0:
			line[1], line[2] = "h", e.Hidden
		}
		if err := enc.Encode(line); err != nil {
			panic(err) // plain values only
		}
	}
	return b.Bytes()
}

func sizeText(s sandbox.TerminalSize) string {
	return strconv.Itoa(int(s.Columns)) + "x" + strconv.Itoa(int(s.Rows))
}

// DecodeTerminal reads lines back. Times never go back, and what no recorder
// writes is an error.
func DecodeTerminal(lines []byte) ([]TerminalEvent, error) {
	var events []TerminalEvent
	scan := bufio.NewScanner(bytes.NewReader(lines))
	scan.Buffer(nil, maxTerminalLine)
	for scan.Scan() {
		e, err := decodeMoment(scan.Bytes())
		if err != nil {
			return events, &sandbox.Error{Op: "read moments of a terminal", Code: sandbox.CodeHistoryCorrupt, Err: err}
		}
		if n := len(events); n > 0 {
			e.At = max(e.At, events[n-1].At)
		}
		events = append(events, e)
	}
	if err := scan.Err(); err != nil {
		return events, &sandbox.Error{Op: "read moments of a terminal", Code: sandbox.CodeHistoryCorrupt, Err: err}
	}
	return events, nil
}

const maxTerminalLine = 1 << 20

var errMoment = errors.New("a line is not [time, kind, value]")

func decodeMoment(line []byte) (e TerminalEvent, err error) {
	var parts []json.RawMessage
	var at int64
	var kind string
	if json.Unmarshal(line, &parts) != nil || len(parts) != 3 ||
		json.Unmarshal(parts[0], &at) != nil || json.Unmarshal(parts[1], &kind) != nil || at < 0 || at > maxMoment {
		return e, errMoment
	}
	e.At = time.Duration(at) * time.Microsecond
	if err := e.take(kind, parts[2]); err != nil || e.Shown < 0 || e.Hidden < 0 {
		return e, errMoment
	}
	return e, nil
}

func (e *TerminalEvent) take(kind string, value json.RawMessage) (err error) {
	switch kind {
	case "o":
		err = json.Unmarshal(value, &e.Shown)
	case "i":
		err = json.Unmarshal(value, &e.Typed)
	case "h":
		err = json.Unmarshal(value, &e.Hidden)
	case "r":
		var text string
		if err = json.Unmarshal(value, &text); err == nil {
			e.Size, err = readSize(text)
		}
	}
	return err
}

func readSize(text string) (*sandbox.TerminalSize, error) {
	columns, rows, _ := strings.Cut(text, "x")
	c, badColumns := strconv.ParseUint(columns, 10, 16)
	r, badRows := strconv.ParseUint(rows, 10, 16)
	size := &sandbox.TerminalSize{Columns: uint16(c), Rows: uint16(r)}
	return size, errors.Join(badColumns, badRows, size.Validate())
}

// maxMoment is a year, in microseconds.
const maxMoment = int64(365 * 24 * time.Hour / time.Microsecond)
