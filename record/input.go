package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// input is a command's standard input, or what is typed on its terminal. It
// counts what it has taken from each client, so that one whose request was cut
// can go on from there.
type input struct {
	w     io.WriteCloser
	keys  *keyboard    // nil: no terminal, where all clients are one
	typed func([]byte) // is told what was typed

	mu    sync.Mutex
	taken map[string]int64
}

func newInput(w io.WriteCloser) *input { return &input{w: w, taken: map[string]int64{}} }

// hand is the input as one client has it.
type hand struct {
	*input
	who string
}

func (in *input) of(who string) *hand {
	if in.keys == nil {
		who = ""
	}
	return &hand{in, who}
}

// Write implements io.Writer.
func (h *hand) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.write(p)
}

func (h *hand) write(p []byte) (int, error) {
	if h.keys != nil {
		if err := h.keys.hold(h.who); err != nil {
			return 0, err
		}
		h.typed(p)
	}
	n, err := h.w.Write(p)
	h.taken[h.who] += int64(n)
	return n, err
}

// Close implements io.Closer.
func (h *hand) Close() error {
	if h.keys != nil {
		if err := h.keys.hold(h.who); err != nil {
			return err
		}
	}
	return h.w.Close()
}

// maxHands bounds how many clients of a terminal are counted.
const maxHands = 64

// Feed writes what from holds, which begins at an offset of the client's input,
// leaving out what was taken before. It returns how much has been taken in all.
func (h *hand) Feed(offset int64, from io.Reader) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.taken) > maxHands {
		maps.DeleteFunc(h.taken, func(who string, _ int64) bool { return who != h.who })
	}
	n := h.taken[h.who]
	if offset < 0 || offset > n {
		return n, sandbox.Invalid("offset", fmt.Sprintf("is %d, but the command has taken %d bytes of input; go on from there", offset, n))
	}
	if _, err := io.CopyN(io.Discard, from, n-offset); err != nil {
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		return n, err
	}
	_, err := io.Copy(writerFunc(h.write), from)
	return h.taken[h.who], err
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// keyboard tells who types on a terminal.
type keyboard struct {
	mu   sync.Mutex
	who  string
	last time.Time
}

// keep is how long a client has the keyboard after its last key, if it stays.
const keep = 10 * time.Second

// hold lets a client type, or refuses it while another does.
func (k *keyboard) hold(who string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.who != who && k.who != "" && time.Since(k.last) < keep {
		return &sandbox.Error{
			Op: "type", Code: sandbox.CodeTerminalBusy,
			Message: "another client types; take the keyboard, or wait until it has been still for " + keep.String(),
		}
	}
	k.who, k.last = who, time.Now()
	return nil
}

func (k *keyboard) take(who string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.who, k.last = who, time.Now()
}

// release lets others type when a client goes.
func (k *keyboard) release(who string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.who == who {
		k.who = ""
	}
}

// Control implements sandbox.Attacher.
func (s *Session) Control(ctx context.Context, opID string) (sandbox.Control, error) {
	switch r, op, err := s.find(ctx, opID); {
	case err != nil:
		return nil, err
	case r != nil:
		return &client{run: r}, nil
	default:
		return s.replay(op, sandbox.Offsets{}, true)
	}
}
