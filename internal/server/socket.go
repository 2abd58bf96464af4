package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/glassboxhq/glassbox/sandbox"
)

const (
	maxTyped = 64 << 10 // in one frame
	// maxOrders is how many frames wait for a program that does not read, while
	// what it shows goes on.
	maxOrders = 64
	pingEvery = 20 * time.Second
	// quiet is how long nothing comes when all that was shown before is told.
	quiet = 300 * time.Millisecond
)

// socket is a terminal as one client has it. Four work at once, until the end
// of one is that of all:
//
//	show: what the terminal shows ──> client
//	read: client ──orders──> obey: the terminal
//	stay: asks whether the client is there, and may be
type socket struct {
	s      *Server
	v      *visit
	r      *http.Request
	conn   *websocket.Conn
	p      sandbox.Process
	orders chan order
	full   atomic.Bool // orders wait, and the client is not read

	told string // of the keyboard, last

	opened time.Time
	live   atomic.Bool   // the client knows that what comes is new
	window int64         // bytes that may be on their way; 0: any number
	shown  atomic.Int64  // place up to which the client has shown
	caught chan struct{} // the client has shown more
}

// order is what a client wants.
type order struct {
	keys []byte
	size *sandbox.TerminalSize
	take bool // the keyboard
	seen *int64
}

// serve lets a client use the terminal.
func (k *socket) serve(ctx context.Context, w http.ResponseWriter) {
	// Where it comes from was looked at before anything else.
	conn, err := websocket.Accept(w, k.r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		k.v.code = string(sandbox.CodeInvalid)
		return // it has answered
	}
	defer func() { _ = conn.CloseNow() }() // closed twice is closed
	conn.SetReadLimit(maxTyped)
	k.s.recordNow(ctx, k.v)
	k.conn, k.opened = conn, time.Now()
	k.orders, k.caught = make(chan order, maxOrders), make(chan struct{}, 1)
	working, end := context.WithCancelCause(ctx)
	defer end(nil)
	var group sync.WaitGroup
	for _, work := range []func(context.Context) error{k.show, k.read, k.obey, k.stay} {
		group.Go(func() { end(work(working)) })
	}
	<-working.Done()
	k.bye(ctx, context.Cause(working))
	_ = k.p.Close()     // nobody waits for the program to read any more
	_ = conn.CloseNow() // nobody reads any more
	group.Wait()
}

// errClosed is a client that has gone. Why is not told: a broken connection says
// io.EOF, as the end of the output does.
var errClosed = errors.New("the client has closed the socket")

// bye tells why nothing more comes.
func (k *socket) bye(ctx context.Context, why error) {
	switch {
	case errors.Is(why, errClosed) || ctx.Err() != nil:
	case errors.Is(why, io.EOF):
		_ = k.conn.Close(websocket.StatusNormalClosure, "") // it may have gone
	default:
		_ = k.tell(ctx, map[string]any{"type": "problem", "problem": k.s.problemOf(why, k.v)})
		_ = k.conn.Close(websocket.StatusPolicyViolation, "")
	}
}

// show sends what the terminal shows, and how it ended.
func (k *socket) show(ctx context.Context) error {
	idle := time.AfterFunc(quiet, func() { _ = k.goLive(ctx) }) // its end is seen elsewhere
	defer idle.Stop()
	for began := false; ; began = true {
		c, err := k.p.Next(ctx)
		if errors.Is(err, io.EOF) {
			return k.exit(ctx)
		}
		if err == nil && !began {
			k.shown.Store(c.Offset)
			err = k.tell(ctx, map[string]any{"type": "start", "offset": c.Offset})
		}
		if err == nil && !c.Time.Before(k.opened) {
			err = k.goLive(ctx)
		}
		if err == nil {
			err = k.write(ctx, websocket.MessageBinary, c.Data)
		}
		if err == nil {
			err = k.hold(ctx, c.Offset+int64(len(c.Data)))
		}
		if err != nil {
			return err
		}
		idle.Reset(quiet)
	}
}

// goLive tells the client, once, that it has been told all that was shown
// before it came.
func (k *socket) goLive(ctx context.Context) error {
	if k.live.Swap(true) {
		return nil
	}
	return k.tell(ctx, map[string]any{"type": "live"})
}

// hold waits until the client has shown enough of what was sent up to a place.
func (k *socket) hold(ctx context.Context, sent int64) error {
	for k.window > 0 && sent-k.shown.Load() > k.window {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-k.caught:
		}
	}
	return nil
}

func (k *socket) exit(ctx context.Context) error {
	res, err := k.p.Wait(ctx)
	if err != nil {
		return err
	}
	err = k.tell(ctx, map[string]any{"type": "exit", "code": res.ExitCode, "status": res.Status, "signal": res.Signal, "reason": res.Reason})
	return errors.Join(err, io.EOF)
}

// read takes what the client wants.
func (k *socket) read(ctx context.Context) error {
	for {
		kind, data, err := k.conn.Read(context.WithoutCancel(ctx)) // else the end of ctx would cut it before its last word
		if err != nil {
			return errClosed
		}
		o := order{keys: data}
		if kind == websocket.MessageText {
			if o, err = readOrder(data); err != nil {
				return err
			}
		}
		if o.seen != nil {
			k.catch(*o.seen)
			continue
		}
		select {
		case k.orders <- o:
			continue
		default:
			k.full.Store(true)
		}
		select {
		case k.orders <- o:
			k.full.Store(false)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// catch notes how far the client has come.
func (k *socket) catch(place int64) {
	k.shown.Store(place)
	select {
	case k.caught <- struct{}{}:
	default:
	}
}

// readOrder reads a text frame.
func readOrder(text []byte) (order, error) {
	var frame struct {
		Type string `json:"type"`
		sandbox.TerminalSize
		Writer bool  `json:"writer"`
		Offset int64 `json:"offset"`
	}
	switch err := json.Unmarshal(text, &frame); {
	case err == nil && frame.Type == "resize":
		return order{size: &frame.TerminalSize}, frame.Validate()
	case err == nil && frame.Type == "role" && frame.Writer:
		return order{take: true}, nil
	case err == nil && frame.Type == "shown":
		return order{seen: &frame.Offset}, nil
	}
	return order{}, sandbox.Invalid("frame", `must be {"type":"resize","columns":80,"rows":24}, {"type":"role","writer":true} or {"type":"shown","offset":1024}`)
}

// obey does what the client wants. What is refused while another types is told,
// and left.
func (k *socket) obey(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case o := <-k.orders:
			err := k.do(ctx, o)
			switch sandbox.CodeOf(err) {
			case sandbox.CodeTerminalBusy:
				err = k.role(ctx, false)
			case sandbox.CodeSandboxState:
				err = nil // it has ended, which is told
			default:
				if err == nil {
					err = k.role(ctx, true)
				}
			}
			if err != nil {
				return err
			}
		}
	}
}

func (k *socket) do(ctx context.Context, o order) (err error) {
	t, ok := k.p.(sandbox.Terminal)
	switch {
	case !ok:
		return &sandbox.Error{Op: "use terminal", Code: sandbox.CodeUnsupported}
	case o.take:
		return t.Take(ctx)
	case o.size != nil:
		return t.Resize(ctx, *o.size)
	}
	_, err = t.Stdin().Write(o.keys)
	return err
}

// role tells the client whether it may type, when that has changed.
func (k *socket) role(ctx context.Context, writer bool) error {
	text := strconv.FormatBool(writer)
	if k.told == text {
		return nil
	}
	k.told = text
	return k.tell(ctx, map[string]any{"type": "role", "writer": writer})
}

// stay ends the socket of a client that is gone, or may be here no longer.
func (k *socket) stay(ctx context.Context) error {
	admitted, pinged := time.NewTicker(admitEvery), time.NewTicker(pingEvery)
	defer admitted.Stop()
	defer pinged.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-admitted.C:
			if err := k.s.admit(k.r, &visit{}, accesses["use-terminal"]); err != nil {
				return err
			}
		case <-pinged.C:
			waiting, cancel := context.WithTimeout(ctx, pingEvery)
			err := k.conn.Ping(waiting)
			cancel()
			if err != nil && !k.full.Load() {
				return errClosed
			}
		}
	}
}

func (k *socket) tell(ctx context.Context, frame map[string]any) error {
	text, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	return k.write(ctx, websocket.MessageText, text)
}

// write sends a frame, unless the client takes nothing for a while.
func (k *socket) write(ctx context.Context, kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := k.conn.Write(ctx, kind, data); err != nil {
		return errClosed
	}
	return nil
}
