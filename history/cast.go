package history

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Recording is a Reader that has the moments of terminals, too.
type Recording interface {
	Reader
	TerminalReader
}

// WriteCast writes what a terminal showed as an asciicast, version 2, which
// asciinema and its players play. What was typed is in it, where the terminal
// showed it. The format is described at docs.asciinema.org/manual/asciicast/v2.
func WriteCast(ctx context.Context, w io.Writer, from Recording, op *Operation) error {
	if op.Type != TerminalSession {
		return &sandbox.Error{Op: "export asciicast", Code: sandbox.CodeInvalid, Message: "operation " + op.ID + " is a " + op.Type + ", not a terminal.session"}
	}
	events, err := from.Terminal(ctx, op.ID)
	if err != nil {
		return err
	}
	c := &cast{enc: json.NewEncoder(w), shown: &shown{ctx: ctx, from: from, id: op.ID}}
	c.enc.SetEscapeHTML(false)
	if err := c.head(op); err != nil {
		return err
	}
	for _, e := range events {
		if err := c.event(e); err != nil {
			return err
		}
		c.last = e.At.Seconds()
	}
	// What was shown and has no moment: the recorder was killed before.
	return c.rest(max(c.last, op.CompletedAt.Sub(op.StartedAt).Seconds()))
}

// cast writes the lines of an asciicast. Text must be UTF-8, and a character
// may be shown in pieces: its first bytes wait for the others.
type cast struct {
	enc   *json.Encoder
	shown *shown
	held  []byte
	last  float64 // seconds
}

func (c *cast) head(op *Operation) error {
	var request struct {
		Terminal sandbox.TerminalSize `json:"terminal"`
	}
	_ = json.Unmarshal(op.Request, &request) // without it, the usual size
	if request.Terminal.Validate() != nil {
		request.Terminal = sandbox.TerminalSize{Columns: 80, Rows: 24}
	}
	head := map[string]any{
		"version": 2, "width": request.Terminal.Columns, "height": request.Terminal.Rows,
		"timestamp": op.StartedAt.Unix(),
	}
	if op.Command != nil && op.Command.Line != "" {
		head["command"] = op.Command.Line
	}
	return c.enc.Encode(head)
}

func (c *cast) event(e TerminalEvent) error {
	at := e.At.Seconds()
	switch {
	case e.Size != nil:
		return c.enc.Encode([]any{at, "r", sizeText(*e.Size)})
	case e.Typed != "":
		return c.enc.Encode([]any{at, "i", e.Typed})
	case e.Hidden > 0:
		return c.enc.Encode([]any{at, "i", strings.Repeat("*", min(e.Hidden, maxStars))})
	}
	for left := e.Shown; left > 0; {
		data, err := c.shown.next(left)
		if err != nil || len(data) == 0 {
			return err // the history keeps no more
		}
		left -= int64(len(data))
		if err := c.output(at, data, false); err != nil {
			return err
		}
	}
	return nil
}

const maxStars = 64

func (c *cast) rest(at float64) error {
	for {
		data, err := c.shown.next(maxShown)
		if err != nil {
			return err
		}
		if err := c.output(at, data, len(data) == 0); err != nil || len(data) == 0 {
			return err
		}
	}
}

func (c *cast) output(at float64, data []byte, last bool) error {
	c.held = append(c.held, data...)
	n := len(c.held)
	if !last {
		n -= unfinished(c.held)
	}
	if n == 0 {
		return nil
	}
	text := strings.ToValidUTF8(string(c.held[:n]), "\uFFFD")
	c.held = append(c.held[:0], c.held[n:]...)
	return c.enc.Encode([]any{at, "o", text})
}

// unfinished counts the last bytes that may begin a character.
func unfinished(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}

// shown reads the output of a terminal from its beginning.
type shown struct {
	ctx    context.Context //nolint:containedctx // of the one call of WriteCast
	from   Reader
	id     string
	offset int64
	buf    []byte
	ended  bool
}

const maxShown = 1 << 20

// next returns at most n further bytes; none at the end of what is kept.
func (s *shown) next(n int64) ([]byte, error) {
	if len(s.buf) == 0 && !s.ended {
		data, err := s.from.Output(s.ctx, s.id, sandbox.Stdout, s.offset, maxShown)
		if err != nil {
			return nil, err
		}
		s.buf, s.ended = data, len(data) == 0
		s.offset += int64(len(data))
	}
	part := s.buf[:min(n, int64(len(s.buf)))]
	s.buf = s.buf[len(part):]
	return part, nil
}
