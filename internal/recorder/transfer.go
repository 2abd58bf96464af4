package recorder

import (
	"io"
	"net/http"
	"time"
)

// idleClient is how long a client that sends or takes the content of files may
// do nothing: it keeps others from working meanwhile.
const idleClient = 5 * time.Minute

// sending reads a body as long as its client goes on sending.
type sending struct {
	io.ReadCloser
	control *http.ResponseController
	idle    time.Duration
}

func (s *sending) Read(b []byte) (int, error) {
	_ = s.control.SetReadDeadline(time.Now().Add(s.idle)) // where there is none, it is as before
	return s.ReadCloser.Read(b)
}

// takingAnswer writes an answer as long as its client goes on taking it.
type takingAnswer struct {
	http.ResponseWriter
	control *http.ResponseController
	idle    time.Duration
}

func newTakingAnswer(w http.ResponseWriter, idle time.Duration) io.Writer {
	return &takingAnswer{w, http.NewResponseController(w), idle}
}

func (t *takingAnswer) Write(b []byte) (int, error) {
	_ = t.control.SetWriteDeadline(time.Now().Add(t.idle)) // where there is none, it is as before
	return t.ResponseWriter.Write(b)
}

// taking serves a request with a long body. One that is refused early is
// answered at once, and what the client still sends is let pass, else the
// client would see a broken connection instead of the answer. What is behind
// the end of an archive is let pass as well: net/http would read it together
// with the next request, and panic.
func (s *Server) taking(handle func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex() // HTTP/2 needs no asking
		body := r.Body
		r.Body = &sending{body, control, s.opts.Idle}
		if err := handle(w, r); err != nil {
			s.opts.Logger.DebugContext(r.Context(), "request refused", "path", r.URL.Path, "error", err)
			writeFault(w, err)
		}
		if control.Flush() == nil && control.SetReadDeadline(time.Now().Add(letPass)) == nil {
			_, _ = io.Copy(io.Discard, body)
		}
		return nil
	}
}

// letPass bounds how long a refused client may go on sending.
const letPass = 5 * time.Second
