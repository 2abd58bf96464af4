package record

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// tape carries the output of one command from the process to the history and
// to the clients.
//
//	process ──add──> window ──commit──> history   the first MaxOutput bytes
//	                   │  └──shown──> clients     once committed, or beyond the cap
//	                   └─evict──> ring            beyond the cap, the newest SpoolBytes
//
// A client that is behind the window reads from the history what is there and
// from the ring what is there; the rest is gone.
type tape struct {
	opts   *Options
	gather time.Duration // how long output waits for more before it is committed
	enough int           // and how much of it does not wait
	output func(ctx context.Context, stream sandbox.Stream, offset, length int64) ([]byte, error)

	mu      sync.Mutex
	moved   chan struct{} // closed and replaced whenever something below changes
	window  []*piece      // the newest output, in the order in which it was read
	first   int           // number of window[0], counted from the command's start
	bytes   int           // in the window
	seen    pair          // bytes that came
	kept    pair          // bytes that are in the history
	held    [2][]byte     // what follows them and will be there with the next
	room    int64         // bytes that the history may still take
	left    [2]bool       // the configuration leaves the stream out
	cut     bool          // output went over the cap, or was left out
	broken  bool          // the history failed in between
	rings   [2]*ring
	clients map[*client]struct{}
	drained bool // no more will come
	result  *sandbox.Result
}

// pair is a value for each stream.
type pair [2]int64

func index(stream sandbox.Stream) int {
	if stream == sandbox.Stderr {
		return 1
	}
	return 0
}

var streams = [2]sandbox.Stream{sandbox.Stdout, sandbox.Stderr}

// piece is output in the window.
type piece struct {
	sandbox.Chunk
	record bool // the history is to have it
	taken  bool // it is on its way there
	shown  bool // clients may have it
}

func (p *piece) end() int64 { return p.Offset + int64(len(p.Data)) }

// The window's bounds. It is there so that a client that keeps up is served
// from memory; small pieces are merged up to mergeBytes.
const (
	windowBytes  = 4 << 20
	windowPieces = 4096
	mergeBytes   = 256 << 10
	batchBytes   = 1 << 20
)

func newTape(opts *Options, record bool) *tape {
	config := opts.Config()
	config = *config.Filled()
	t := &tape{
		opts: opts, moved: make(chan struct{}), clients: map[*client]struct{}{},
		gather: min(gather, time.Duration(config.OutputFlushIntervalMS)*time.Millisecond),
		enough: int(config.OutputFlushBytes), left: [2]bool{config.NoStdout, config.NoStderr},
	}
	if record {
		t.room = cmp.Or(opts.MaxOutput, config.MaxOperationOutputBytes)
	}
	return t
}

// wake tells everyone who waits to look again. The caller holds mu.
func (t *tape) wake() {
	close(t.moved)
	t.moved = make(chan struct{})
}

// add takes output from the process. It blocks while the window is full of
// what the history has not committed or a client has not read; a client that
// holds it up for too long is detached.
func (t *tape) add(c sandbox.Chunk, record bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for until := time.Now().Add(t.opts.SlowClient); !t.makeRoom(len(c.Data)); {
		if t.waitForRoom(until) {
			until = time.Now().Add(t.opts.SlowClient)
		}
	}
	n := int64(0)
	if record && !t.broken {
		if n = min(t.room, int64(len(c.Data))); t.left[index(c.Stream)] {
			n = 0
		}
		t.cut = t.cut || n < int64(len(c.Data))
	}
	t.room -= n
	head, tail := c, c
	head.Data, tail.Data, tail.Offset = c.Data[:n], c.Data[n:], c.Offset+n
	t.push(head, true)
	t.push(tail, false)
	t.seen[index(c.Stream)] += int64(len(c.Data))
	t.wake()
}

func (t *tape) push(c sandbox.Chunk, record bool) {
	if len(c.Data) == 0 {
		return
	}
	t.bytes += len(c.Data)
	if len(t.window) > 0 {
		last := t.window[len(t.window)-1]
		if last.record == record && !last.taken && last.Stream == c.Stream && len(last.Data)+len(c.Data) <= mergeBytes {
			last.Data = append(last.Data, c.Data...)
			return
		}
	}
	c.Data = append([]byte(nil), c.Data...)
	t.window = append(t.window, &piece{Chunk: c, record: record, shown: !record})
}

// makeRoom evicts from the window until n bytes fit, and reports whether they
// do.
func (t *tape) makeRoom(n int) bool {
	for len(t.window) > 0 && (t.bytes+n > windowBytes || len(t.window) >= windowPieces) {
		p := t.window[0]
		if !p.shown || t.awaited(p) || !p.record && !t.spool(p) {
			return false
		}
		t.window[0] = nil
		t.window, t.first, t.bytes = t.window[1:], t.first+1, t.bytes-len(p.Data)
	}
	return true
}

// awaited reports whether a client that keeps up has still to read a piece. It
// is served from memory, and the command goes at its pace: to read back what
// has just been recorded would cost more than both.
func (t *tape) awaited(p *piece) bool {
	i := index(p.Stream)
	for c := range t.clients {
		if c.inWindow && c.at[i] < p.end() && time.Since(c.moved) < pace {
			return true
		}
	}
	return false
}

// pace is how long a client that does not read holds up what the history has.
const pace = 100 * time.Millisecond

// inFlight is more than what is under way to a client whom we count as having
// read it.
const inFlight = 2 << 20

// spool moves a piece that the history does not have into the ring, unless
// that would push out what an attached client has still to read. What every
// client has long read is let go of.
func (t *tape) spool(p *piece) bool {
	i := index(p.Stream)
	wanted := len(t.clients) == 0
	for c := range t.clients {
		if c.at[i] < p.end()-t.opts.SpoolBytes {
			return false
		}
		wanted = wanted || c.at[i] < p.end()+inFlight
	}
	r := t.rings[i]
	if !wanted {
		if r != nil { // what it holds is as old
			r.start, r.end = p.end(), p.end()
		}
		return true
	}
	if r == nil {
		var err error
		if r, err = newRing(t.opts.Spool, t.opts.SpoolBytes, p.Offset); err != nil {
			t.opts.Logger.Warn("output cannot be spooled", "error", err)
			return true // what is evicted is gone; the command goes on
		}
		t.rings[i] = r
	}
	if r.end != p.Offset {
		r.start, r.end = p.Offset, p.Offset
	}
	r.write(p.Data)
	return true
}

// waitForRoom waits until the history or a client moves on, and reports whether
// one did. It returns soon all the same: who moved may have stopped. The caller
// holds mu.
func (t *tape) waitForRoom(until time.Time) bool {
	moved := t.moved
	t.mu.Unlock()
	timer := time.NewTimer(min(pace, time.Until(until)))
	defer timer.Stop()
	select {
	case <-moved:
		t.mu.Lock()
		return true
	case <-timer.C:
		t.mu.Lock()
		if time.Now().After(until) {
			t.detachSlow()
		}
		return false
	}
}

// detachSlow lets go of the clients that hold the command up.
func (t *tape) detachSlow() {
	if len(t.window) == 0 || !t.window[0].shown {
		return // it is the history that is slow
	}
	p := t.window[0]
	i := index(p.Stream)
	for c := range t.clients {
		if c.at[i] < p.end()-t.opts.SpoolBytes {
			c.slow = true
			delete(t.clients, c)
		}
	}
	t.wake()
}

// take returns the next batch for the history, or reports that there will be
// none. It waits a moment for more, so that a short command costs one commit.
func (t *tape) take() (batch []sandbox.Chunk, pieces []*piece, last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		pieces = t.untaken()
		if len(pieces) > 0 || t.drained {
			break
		}
		t.wait()
	}
	if !t.drained {
		t.linger()
		pieces = t.untaken()
	}
	size := 0
	for i, p := range pieces {
		if size += len(p.Data); i > 0 && size > batchBytes {
			pieces = pieces[:i]
			break
		}
		p.taken = true
		batch = append(batch, p.Chunk)
	}
	return batch, pieces, t.drained && (len(pieces) == 0 || pieces[len(pieces)-1] == t.lastRecordable())
}

func (t *tape) untaken() []*piece {
	var list []*piece
	for _, p := range t.window {
		if p.record && !p.taken {
			list = append(list, p)
		}
	}
	return list
}

func (t *tape) lastRecordable() *piece {
	for _, p := range slices.Backward(t.window) {
		if p.record {
			return p
		}
	}
	return nil
}

// gather is the longest that output waits, whatever the configuration allows:
// a client waits with it.
const gather = 3 * time.Millisecond

func (t *tape) linger() {
	if t.gather <= 0 {
		return
	}
	deadline := time.NewTimer(t.gather)
	defer deadline.Stop()
	for !t.drained && t.bytes < t.enough {
		moved := t.moved
		t.mu.Unlock()
		select {
		case <-moved:
			t.mu.Lock()
		case <-deadline.C:
			t.mu.Lock()
			return
		}
	}
}

// wait blocks until something moves. The caller holds mu.
func (t *tape) wait() {
	moved := t.moved
	t.mu.Unlock()
	<-moved
	t.mu.Lock()
}

// committed shows a batch to the clients, but for a tail that is held back all
// of it in the history. With err, the history does not have it and takes no
// more.
func (t *tape) committed(pieces []*piece, held [2][]byte, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.broken = true
	}
	for _, p := range t.window {
		if p.record && !p.shown && t.broken {
			p.record, p.shown = false, true
		}
	}
	if !t.broken {
		var ends pair // of what has been committed or is held back
		for i := range ends {
			ends[i] = t.kept[i] + int64(len(t.held[i]))
		}
		for _, p := range pieces {
			p.shown = true
			ends[index(p.Stream)] = p.end()
		}
		for i := range ends {
			t.kept[i] = ends[i] - int64(len(held[i]))
		}
		t.held = held
	}
	t.wake()
}

// next returns the output of one stream from where the client is, at most
// length bytes.
func (t *tape) next(ctx context.Context, p *client) (sandbox.Chunk, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		if p.slow {
			return sandbox.Chunk{}, &sandbox.Error{
				Op: "read output", Code: sandbox.CodeInterrupted, Retryable: true,
				Message: "the client read too slowly and was detached; attach again from where it was",
			}
		}
		if !p.inWindow || p.seq < t.first {
			if c, ok, err := t.behind(ctx, p); ok || err != nil {
				return c, err
			}
			p.inWindow = true
		}
		if c, ok := t.fromWindow(p); ok {
			return c, nil
		}
		if t.result != nil {
			return sandbox.Chunk{}, io.EOF
		}
		moved := t.moved
		t.mu.Unlock()
		select {
		case <-moved:
			t.mu.Lock()
		case <-ctx.Done():
			t.mu.Lock()
			return sandbox.Chunk{}, sandbox.FromContext(ctx, "read output")
		}
	}
}

// fromWindow serves a client that keeps up.
func (t *tape) fromWindow(p *client) (sandbox.Chunk, bool) {
	for i := max(p.seq-t.first, 0); i < len(t.window) && t.window[i].shown; i++ {
		w := t.window[i]
		p.seq = t.first + i // more may be added to it
		s := index(w.Stream)
		if w.end() <= p.at[s] {
			continue
		}
		c := w.Chunk
		c.Data = c.Data[p.at[s]-c.Offset:]
		c.Offset = p.at[s]
		t.advance(p, s, w.end())
		return c, true
	}
	return sandbox.Chunk{}, false
}

func (t *tape) advance(p *client, stream int, to int64) {
	p.at[stream], p.moved = to, time.Now()
	if t.bytes >= windowBytes/2 {
		t.wake() // the process may wait for this client
	}
}

// behind serves a client that wants what has left the window.
func (t *tape) behind(ctx context.Context, p *client) (sandbox.Chunk, bool, error) {
	starts := t.seen
	for _, w := range slices.Backward(t.window) {
		starts[index(w.Stream)] = w.Offset
	}
	for s, start := range starts {
		if p.at[s] >= start {
			continue
		}
		data, err := t.older(ctx, p, s, start)
		if err != nil {
			return sandbox.Chunk{}, false, err
		}
		c := sandbox.Chunk{Stream: streams[s], Offset: p.at[s], Time: time.Now(), Data: data}
		t.advance(p, s, p.at[s]+int64(len(data)))
		return c, true, nil
	}
	return sandbox.Chunk{}, false, nil
}

const olderBytes = 256 << 10

func (t *tape) older(ctx context.Context, p *client, s int, start int64) ([]byte, error) {
	at := p.at[s]
	if at < t.kept[s] {
		n := min(olderBytes, t.kept[s]-at)
		t.mu.Unlock()
		data, err := t.output(ctx, streams[s], at, n)
		t.mu.Lock()
		if err == nil && len(data) == 0 {
			err = gone(streams[s], at, start) // retention was faster
		}
		return data, err
	}
	if tail := t.held[s]; at < t.kept[s]+int64(len(tail)) {
		return slices.Clone(tail[at-t.kept[s]:]), nil
	}
	if r := t.rings[s]; r != nil && at >= r.start && at < r.end {
		return r.read(at, min(olderBytes, start-at))
	}
	until := start
	if r := t.rings[s]; r != nil && r.end > r.start {
		until = r.start
	}
	return nil, gone(streams[s], at, until)
}

func gone(stream sandbox.Stream, from, to int64) error {
	return &sandbox.Error{
		Op: "read output", Code: sandbox.CodeOutputGone,
		Message: fmt.Sprintf("bytes %d to %d of %s are no longer kept; attach from %d on for the rest", from, to, stream, to),
	}
}

// printed tells how much came of each stream.
func (t *tape) printed() pair {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen
}

// close frees the ring.
func (t *tape) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, r := range t.rings {
		if r != nil {
			r.close()
			t.rings[i] = nil
		}
	}
}
