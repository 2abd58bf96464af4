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
