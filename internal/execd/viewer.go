package execd

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/glassboxhq/glassbox/sandbox"
)

// viewer is a WebSocket that shows a pty and types on it. There is one at a
// time.
type viewer struct {
	t     *pty
	conn  *websocket.Conn
	at    int64         // what is shown next
	taken chan struct{} // closed when another has come in its place
}

// The first byte of a binary message.
const (
	frameStdin  = 0
	frameStdout = 1
	frameStderr = 2
	frameReplay = 3 // 8 bytes of offset follow
)

// serverFrame is a text message of ours. Each is a line.
type serverFrame struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id,omitempty"`
	Mode      string `json:"mode,omitempty"`
	ExitCode  *int   `json:"exit_code,omitempty"`
	Error     string `json:"error,omitempty"`
	Code      string `json:"code,omitempty"`
}

// clientFrame is a text message of a client.
type clientFrame struct {
	Type   string `json:"type"`
	Data   string `json:"data"`
	Cols   uint16 `json:"cols"`
	Rows   uint16 `json:"rows"`
	Signal string `json:"signal"`
}

const (
	replayBytes = 1 << 20  // what a viewer that names no place is shown
	pieceBytes  = 64 << 10 // in one message
	maxFrame    = 16 << 20 // of a client
	closeTaken  = 4001
	sendTimeout = 10 * time.Second // for one message
	viewerPing  = 30 * time.Second
)

// viewPTY joins a WebSocket to a pty, and starts that for the first. What is
// wrong is told before the connection changes its protocol: a proxy would hide
// it afterwards.
func (h *Handler) viewPTY(w http.ResponseWriter, r *http.Request) error {
	t, err := h.ptys.find(r.PathValue("id"))
	if err != nil {
		return err
	}
	query := r.URL.Query()
	since := int64(0)
	if text := query.Get("since"); text != "" {
		if since, err = strconv.ParseInt(text, 10, 64); err != nil || since < 0 {
			return sandbox.Invalid("since", "must be a whole number, 0 or more")
		}
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return sandbox.Invalid("upgrade", "must be websocket")
	}
	v := &viewer{t: t, taken: make(chan struct{})}
	take := query.Get("takeover") == "1"
	if err := h.seat(r, v, query.Get("pty") == "0", take); err != nil {
		return err
	}
	defer v.leave()
	if v.conn, err = websocket.Accept(w, r, nil); err != nil {
		return nil //nolint:nilerr // it has answered
	}
	defer v.hangUp()
	v.conn.SetReadLimit(maxFrame)
	v.serve(r.Context(), since)
	return nil
}

// seat gives a viewer its place.
func (h *Handler) seat(r *http.Request, v *viewer, pipes, take bool) error {
	t := v.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.viewer != nil && !take {
		return &refusal{http.StatusConflict, fault{"ALREADY_CONNECTED", "another client is connected; takeover=1 takes its place"}}
	}
	if err := h.start(r.Context(), t, pipes); err != nil {
		return err
	}
	if screen, ok := t.p.(sandbox.Terminal); ok && take && !t.pipes {
		if err := screen.Take(r.Context()); err != nil {
			return err
		}
	}
	if t.viewer != nil {
		close(t.viewer.taken)
	}
	t.viewer = v
	return nil
}

// leave frees the place, unless another has it.
func (v *viewer) leave() {
	v.t.mu.Lock()
	defer v.t.mu.Unlock()
	if v.t.viewer == v {
		v.t.viewer = nil
	}
}

// hangUp ends the connection at once; one that has ended stays so.
func (v *viewer) hangUp() { _ = v.conn.CloseNow() }

// seated reports whether it is still the one who types.
func (v *viewer) seated() bool {
	v.t.mu.Lock()
	defer v.t.mu.Unlock()
	return v.t.viewer == v
}

// serve shows and types until one side ends.
func (v *viewer) serve(ctx context.Context, since int64) {
	ctx, cancel := context.WithCancel(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	parts.Go(func() { v.show(ctx, since); v.hangUp() })
	parts.Go(func() { v.ping(ctx) })
	for {
		kind, data, err := v.conn.Read(ctx)
		if err != nil {
			return
		}
		if !v.seated() {
			continue // what another types counts
		}
		if kind == websocket.MessageText {
			v.steer(ctx, data)
		} else if len(data) > 1 && data[0] == frameStdin {
			v.typeKeys(ctx, data[1:])
		}
	}
}

// ping ends a connection whose other side has gone.
func (v *viewer) ping(ctx context.Context) {
	tick := time.NewTicker(viewerPing)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			wait, cancel := context.WithTimeout(ctx, viewerPing)
			err := v.conn.Ping(wait)
			cancel()
			if err != nil {
				v.hangUp()
				return
			}
		}
	}
}

// steer does what a text message asks for.
func (v *viewer) steer(ctx context.Context, text []byte) {
	var f clientFrame
	if json.Unmarshal(text, &f) != nil {
		return // as execd does
	}
	var err error
	p, _ := v.t.started()
	switch f.Type {
	case "stdin":
		v.typeKeys(ctx, []byte(f.Data))
	case "resize":
		if screen, ok := p.(sandbox.Terminal); ok && !v.t.pipes {
			err = screen.Resize(ctx, sandbox.TerminalSize{Columns: f.Cols, Rows: f.Rows})
		}
	case "signal":
		err = p.Signal(ctx, f.Signal)
	case "ping":
		v.tell(&serverFrame{Type: "pong"})
	default:
		v.tell(&serverFrame{Type: "error", Error: "unknown frame type", Code: "INVALID_FRAME"})
	}
	if err != nil {
		v.tell(&serverFrame{Type: "error", Error: err.Error(), Code: newFault(err).Code})
	}
}

// typeKeys hands input on. A program that does not read it holds up its viewer,
// who holds up nobody.
func (v *viewer) typeKeys(ctx context.Context, data []byte) {
	select {
	case v.t.keys <- typed{data, v}:
	case <-v.t.job.done:
	case <-v.taken:
	case <-ctx.Done():
	}
}

func (v *viewer) tell(f *serverFrame) bool {
	text, err := json.Marshal(f)
	if err != nil {
		panic(err) // plain values only
	}
	return v.send(websocket.MessageText, append(text, '\n'))
}

func (v *viewer) send(kind websocket.MessageType, data []byte) bool {
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
	defer cancel()
	return v.conn.Write(ctx, kind, data) == nil
}

// show sends what was printed before, what is printed now, and the end.
func (v *viewer) show(ctx context.Context, since int64) {
	log := v.t.job.log
	start, end, _ := log.span()
	v.at = min(max(since, start), end)
	if since == 0 {
		v.at = max(start, end-replayBytes)
	}
	for v.at < end {
		if !v.piece(end, true) {
			return
		}
	}
	mode := "pty"
	if v.t.pipes {
		mode = "pipe"
	}
	if !v.tell(&serverFrame{Type: "connected", SessionID: v.t.id, Mode: mode}) {
		return
	}
	for {
		start, end, moved := log.span()
		late := v.at < start // it was too slow, and the log went on
		v.at = max(v.at, start)
		if v.at < end {
			if v.displaced() || !v.piece(end, late) {
				return
			}
			continue
		}
		select {
		case <-moved:
		case <-v.t.job.done:
			if _, now, _ := log.span(); now == v.at {
				v.tellExit(ctx)
				return
			}
		case <-v.taken:
			v.displaced()
			return
		case <-ctx.Done():
			return
		}
	}
}

// displaced says good-bye when another has come in its place.
func (v *viewer) displaced() bool {
	select {
	case <-v.taken:
		_ = v.conn.Close(closeTaken, "TAKEN_OVER")
		return true
	default:
		return false
	}
}

// piece sends one message of output, and reports whether it could.
func (v *viewer) piece(end int64, replay bool) bool {
	body, at, _ := v.t.job.log.from(v.at)
	replay = replay || at != v.at
	v.at = at
	stream, until := v.t.streamAt(at, max(at, end))
	var head []byte
	switch {
	case replay || stream == "":
		head = binary.BigEndian.AppendUint64([]byte{frameReplay}, uint64(at))
		until = min(max(at, end), at+replayBytes)
	case stream == sandbox.Stderr:
		head, until = []byte{frameStderr}, min(until, at+pieceBytes)
	default:
		head, until = []byte{frameStdout}, min(until, at+pieceBytes)
	}
	data := make([]byte, len(head)+int(until-at))
	n, err := io.ReadFull(body, data[copy(data, head):])
	if n == 0 && err != nil {
		return false
	}
	v.at += int64(n)
	return v.send(websocket.MessageBinary, data[:len(head)+n])
}

func (v *viewer) tellExit(ctx context.Context) {
	p, _ := v.t.started()
	res, err := p.Wait(ctx)
	if err == nil && v.tell(&serverFrame{Type: "exit", ExitCode: &res.ExitCode}) {
		v.leave() // who learns of the end may look again
		_ = v.conn.Close(websocket.StatusNormalClosure, "process exited")
	}
}
