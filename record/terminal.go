package record

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox"
)

// onTerminal lets one client type at a time, and notes how the terminal moves.
func (r *run) onTerminal() {
	r.moments = &moments{began: r.started, hidden: func() bool { return false }}
	if h, ok := r.inner.(interface{ Hidden() bool }); ok {
		r.moments.hidden = h.Hidden
	}
	r.input.keys, r.input.typed = &keyboard{}, r.moments.typed
}

// moments gathers how a terminal moves, until it is written down.
type moments struct {
	began  time.Time
	hidden func() bool // what is typed now is not to be seen

	mu      sync.Mutex
	bytes   int // of what was typed, in the list
	list    []history.TerminalEvent
	written time.Time
}

const (
	// momentMerge joins what is shown within so short a time.
	momentMerge = 2 * time.Millisecond
	// momentEvery and maxMoments are when the moments are written down.
	momentEvery = 100 * time.Millisecond
	maxMoments  = 512
	// momentsHeld and typedHeld bound them while nothing is shown, or the
	// history takes none.
	momentsHeld = 16 << 10
	typedHeld   = 1 << 20
)

func (m *moments) shown(at time.Time, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := history.TerminalEvent{At: at.Sub(m.began), Shown: int64(n)}
	if last := len(m.list) - 1; last >= 0 && m.list[last].Shown > 0 && e.At-m.list[last].At < momentMerge {
		m.list[last].Shown += e.Shown
		return
	}
	m.add(e)
}

// typed notes what is about to be typed.
func (m *moments) typed(p []byte) {
	hidden := m.hidden()
	m.mu.Lock()
	defer m.mu.Unlock()
	e := history.TerminalEvent{At: time.Since(m.began), Typed: strings.ToValidUTF8(string(p), "\uFFFD")}
	if hidden {
		e.Typed, e.Hidden = "", utf8.RuneCount(p)
	}
	m.add(e)
}

func (m *moments) resized(size sandbox.TerminalSize) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(history.TerminalEvent{At: time.Since(m.began), Size: &size})
}

func (m *moments) add(e history.TerminalEvent) {
	if len(m.list) < momentsHeld && m.bytes < typedHeld {
		m.list, m.bytes = append(m.list, e), m.bytes+len(e.Typed)
	}
}

// due takes what is to be written down now.
func (m *moments) due(last bool) []history.TerminalEvent {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.list) == 0 || !last && len(m.list) < maxMoments && time.Since(m.written) < momentEvery {
		return nil
	}
	n := len(m.list)
	if !last && n < maxMoments {
		n = m.lines()
	}
	list := slices.Clone(m.list[:n])
	m.list, m.written = slices.Delete(m.list, 0, n), time.Now()
	m.bytes = 0
	for _, e := range m.list {
		m.bytes += len(e.Typed)
	}
	return list
}

// lineEnds are the keys after which a line that was typed is whole.
const lineEnds = "\r\n\x03\x04"

// lines counts the moments up to a line that is still being typed: only as a
// whole can a secret in it be known.
func (m *moments) lines() int {
	open := len(m.list)
	for i, e := range slices.Backward(m.list) {
		if strings.ContainsAny(e.Typed, lineEnds) {
			break
		}
		if e.Typed != "" {
			open = i
		}
	}
	return open
}

// writeMoments writes down how a terminal has moved. What is lost of it costs
// a replay its timing, and the operation nothing.
func (s *Session) writeMoments(ctx context.Context, r *run, last bool) {
	store, ok := s.store.(history.TerminalStore)
	if r.moments == nil || !ok || !r.act.recorded {
		return
	}
	events := r.moments.due(last)
	if len(events) == 0 {
		return
	}
	maskTyped(s.opts.Mask, events)
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	if err := store.AppendTerminal(ctx, r.id, events); err != nil {
		s.opts.Logger.WarnContext(ctx, "moments of a terminal are not recorded", "operation", r.id, "error", err)
	}
}

// maskTyped masks secrets in what was typed, as one text.
func maskTyped(m *redact.Masker, events []history.TerminalEvent) {
	var typed strings.Builder
	for _, e := range events {
		typed.WriteString(e.Typed)
	}
	masked, n := m.Text(typed.String())
	if n == 0 {
		return
	}
	for i := range events { // a mask is as long as what it hides
		size := len(events[i].Typed)
		events[i].Typed, masked = masked[:size], masked[size:]
	}
}

// As names the client who works with the command: a terminal tells clients
// apart by their names.
func (p *client) As(who string) { p.who = who }

// Resize implements sandbox.Terminal.
func (p *client) Resize(ctx context.Context, size sandbox.TerminalSize) error {
	t, err := p.terminal()
	if err != nil {
		return err
	}
	if err := size.Validate(); err != nil {
		return err
	}
	if err := p.run.input.keys.hold(p.who); err != nil {
		return err
	}
	if err := t.Resize(ctx, size); err != nil {
		return err
	}
	p.run.moments.resized(size)
	return nil
}

// Take implements sandbox.Terminal.
func (p *client) Take(context.Context) error {
	if _, err := p.terminal(); err != nil {
		return err
	}
	p.run.input.keys.take(p.who)
	return nil
}

func (p *client) terminal() (sandbox.Terminal, error) {
	if t, ok := p.run.inner.(sandbox.Terminal); ok && p.run.moments != nil {
		return t, nil
	}
	return nil, &sandbox.Error{Op: "use terminal", Code: sandbox.CodeSandboxState, Message: "the command runs on no terminal"}
}

func (p *replay) Resize(context.Context, sandbox.TerminalSize) error { return errEnded }
func (p *replay) Take(context.Context) error                         { return errEnded }
