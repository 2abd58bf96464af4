package recorder

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
)

func (s *Server) runCommand(w http.ResponseWriter, r *http.Request) error {
	var req wire.CommandRequest
	if err := decode(w, r, wire.MaxRequestBytes, &req); err != nil {
		return err
	}
	who, err := clientName(r)
	if err != nil {
		return err
	}
	if err := s.stopped.check(req.ID); err != nil {
		return err
	}
	out := newFrameWriter(w)
	defer out.stop()
	p, err := s.session.Start(record.Lasting(r.Context()), req.Command()) // it may have to wait for its turn
	if err != nil {
		return out.refuse(err)
	}
	nameClient(p, who)
	if s.stopped.check(req.ID) != nil { // while it was being started
		_ = p.Stop(context.WithoutCancel(r.Context())) // its end tells
	}
	s.stream(out, r, p)
	return nil
}

func (s *Server) attachCommand(w http.ResponseWriter, r *http.Request) error {
	var from sandbox.Offsets
	for name, to := range map[string]*int64{"stdout": &from.Stdout, "stderr": &from.Stderr} {
		var err error
		if *to, err = place(r, name); err != nil {
			return err
		}
	}
	who, err := clientName(r)
	if err != nil {
		return err
	}
	p, err := s.session.Attach(r.Context(), r.PathValue("id"), from)
	if err != nil {
		return err
	}
	nameClient(p, who)
	out := newFrameWriter(w)
	defer out.stop()
	s.stream(out, r, p)
	return nil
}

// stream writes a command's frames until its end. A client that goes before
// leaves the command running for a while.
func (s *Server) stream(out *frameWriter, r *http.Request, p sandbox.Process) {
	start := wire.Start{ID: p.ID(), StartedAt: startOf(p), Recording: s.store != nil}
	payload, err := json.Marshal(start)
	if err != nil {
		panic(err) // plain values only
	}
	err = out.frame(wire.FrameStart, payload)
	for err == nil {
		var c sandbox.Chunk
		if c, err = p.Next(r.Context()); err == nil {
			err = out.chunk(c)
		}
	}
	if errors.Is(err, io.EOF) {
		var res *sandbox.Result
		if res, err = p.Wait(r.Context()); err == nil {
			_ = out.frame(wire.FrameExit, wire.EncodeResult(res)) // who is gone asks again
			_ = p.Close()
			return
		}
	}
	if r.Context().Err() == nil && out.err == nil {
		_ = out.frame(wire.FrameError, wire.EncodeFault(err))
	}
	if l, ok := p.(interface{ Leave(time.Duration) }); ok {
		l.Leave(s.opts.Abandoned)
	} else {
		_ = p.Close()
	}
}

func startOf(p sandbox.Process) time.Time {
	if t, ok := p.(interface{ StartedAt() time.Time }); ok {
		return t.StartedAt()
	}
	return time.Now()
}

// frameWriter writes frames whole, and a ping when nothing else was written
// for a while. The answer begins with the first of them.
type frameWriter struct {
	mu    sync.Mutex
	head  http.Header
	begun bool
	stop  func() // the pings
	w     *bufio.Writer
	flush func() error
	buf   []byte
	last  time.Time
	err   error
}

func newFrameWriter(w http.ResponseWriter) *frameWriter {
	f := &frameWriter{head: w.Header(), w: bufio.NewWriterSize(w, 64<<10), flush: http.NewResponseController(w).Flush, last: time.Now()}
	f.stop = sync.OnceFunc(f.ping())
	return f
}

// refuse tells an error of a command that was not started: by a frame, if
// frames were written while it waited.
func (f *frameWriter) refuse(err error) error {
	f.stop()
	if !f.begun {
		return err
	}
	_ = f.frame(wire.FrameError, wire.EncodeFault(err)) // who is gone asks again
	return nil
}

func (f *frameWriter) frame(t wire.FrameType, payload []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.buf = wire.AppendFrame(f.buf[:0], t, payload)
	return f.write()
}

// maxChunk keeps a frame below the wire's limit.
const maxChunk = 256 << 10

func (f *frameWriter) chunk(c sandbox.Chunk) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(c.Data) > 0 {
		part := c
		part.Data = c.Data[:min(len(c.Data), maxChunk)]
		f.buf = wire.AppendChunk(f.buf[:0], part)
		if err := f.write(); err != nil {
			return err
		}
		c.Offset, c.Data = c.Offset+int64(len(part.Data)), c.Data[len(part.Data):]
	}
	return nil
}

func (f *frameWriter) write() error {
	if f.err != nil {
		return f.err
	}
	if !f.begun {
		f.begun = true
		f.head.Set("Content-Type", "application/octet-stream")
		f.head.Set("Cache-Control", "no-store, no-transform")
		f.head.Set("X-Accel-Buffering", "no")
	}
	f.last = time.Now()
	if _, f.err = f.w.Write(f.buf); f.err == nil {
		if f.err = f.w.Flush(); f.err == nil {
			f.err = f.flush()
		}
	}
	return f.err
}

// ping keeps the connection alive until the returned function is called.
func (f *frameWriter) ping() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(wire.PingEvery / 2)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				f.mu.Lock()
				if now.Sub(f.last) >= wire.PingEvery/2 {
					f.buf = wire.AppendFrame(f.buf[:0], wire.FramePing, nil)
					_ = f.write() // the next frame tells
				}
				f.mu.Unlock()
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

func (s *Server) stopCommand(w http.ResponseWriter, r *http.Request) error {
	c, err := s.session.Control(r.Context(), r.PathValue("id"))
	if err != nil {
		if errors.Is(err, sandbox.ErrNotFound) {
			s.stopped.add(r.PathValue("id"))
		}
		return err
	}
	if err := c.Stop(r.Context()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) signalCommand(w http.ResponseWriter, r *http.Request) error {
	c, err := s.session.Control(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := c.Signal(r.Context(), r.URL.Query().Get("name")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// feedCommand gives a command input, from an offset on, so that a request
// that was cut can be repeated.
func (s *Server) feedCommand(w http.ResponseWriter, r *http.Request) error {
	c, err := s.control(r)
	if err != nil {
		return err
	}
	offset, err := number(r, "offset", 0)
	if err != nil {
		return err
	}
	in, ok := c.Stdin().(interface {
		Feed(offset int64, from io.Reader) (int64, error)
	})
	if !ok {
		return &sandbox.Error{Op: "write input", Code: sandbox.CodeSandboxState, Message: "the command has ended"}
	}
	taken, err := in.Feed(offset, r.Body)
	if err != nil {
		if _, ok := errors.AsType[*sandbox.Error](err); ok {
			return err
		}
		return &sandbox.Error{Op: "write input", Code: sandbox.CodeSandboxState, Message: "the command takes no more input", Err: err}
	}
	if r.URL.Query().Get("close") == "1" {
		_ = c.Stdin().Close() // closed twice is closed, and a terminal stays
	}
	return answer(w, &wire.StdinAnswer{Offset: taken})
}

// control finds a command as the client of a request has it.
func (s *Server) control(r *http.Request) (sandbox.Control, error) {
	who, err := clientName(r)
	if err != nil {
		return nil, err
	}
	c, err := s.session.Control(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	nameClient(c, who)
	return c, nil
}

const maxClientName = 64

// clientName reads what a client of a terminal calls itself, in all of its
// requests.
func clientName(r *http.Request) (string, error) {
	who := r.URL.Query().Get("client")
	if len(who) > maxClientName {
		return "", sandbox.Invalid("client", "must be at most 64 bytes long")
	}
	return who, nil
}

func nameClient(c sandbox.Control, who string) {
	if named, ok := c.(interface{ As(who string) }); ok && who != "" {
		named.As(who)
	}
}

// steerTerminal gives a client the keyboard, or a terminal another size.
func (s *Server) steerTerminal(w http.ResponseWriter, r *http.Request) error {
	c, err := s.control(r)
	if err != nil {
		return err
	}
	t, ok := c.(sandbox.Terminal)
	if !ok {
		return &sandbox.Error{Op: "use terminal", Code: sandbox.CodeUnsupported}
	}
	query := r.URL.Query()
	if query.Get("take") == "1" {
		if err := t.Take(r.Context()); err != nil {
			return err
		}
	}
	if query.Has("columns") || query.Has("rows") {
		var size sandbox.TerminalSize
		for name, to := range map[string]*uint16{"columns": &size.Columns, "rows": &size.Rows} {
			n, err := number(r, name, 0)
			if err != nil {
				return err
			}
			*to = uint16(min(n, math.MaxUint16)) // which no terminal is
		}
		if err := t.Resize(r.Context(), size); err != nil {
			return err
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// place reads an offset from the query; a negative one counts from the end.
func place(r *http.Request, name string) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, sandbox.Invalid(name, "must be a whole number; a negative one counts from the end")
	}
	return n, nil
}

// number reads a whole number from the query.
func number(r *http.Request, name string, fallback int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, sandbox.Invalid(name, "must be a whole number, 0 or more")
	}
	return n, nil
}
