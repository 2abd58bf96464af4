// Package idle ends an exchange with a client who does nothing: it would hold up
// others, or a connection for ever.
//
//	r.Body = idle.Body(w, r.Body, 5*time.Minute)
package idle

import (
	"io"
	"net/http"
	"time"
)

// Body reads a request's body as long as its client goes on sending. When it
// has been read, [Done] is to be called before anything else goes on.
func Body(w http.ResponseWriter, body io.ReadCloser, limit time.Duration) io.ReadCloser {
	return &reader{body, http.NewResponseController(w), limit}
}

type reader struct {
	io.ReadCloser
	control *http.ResponseController
	limit   time.Duration
}

// Read implements io.Reader.
func (r *reader) Read(b []byte) (int, error) {
	_ = r.control.SetReadDeadline(time.Now().Add(r.limit)) // where there is none, it is as before
	return r.ReadCloser.Read(b)
}

// Done is told how the reading of a body went. A client may be silent again:
// while an answer goes out, net/http waits for the connection to end, and would
// take a deadline for that. One whose body was refused may not: net/http reads
// on before it answers.
func Done(w http.ResponseWriter, err error) {
	if err != nil {
		Refused(w)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}

// Refused bounds how long a client who was refused may go on sending.
func Refused(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(LetPass))
}

// LetPass is how long what is still sent is let pass.
const LetPass = 5 * time.Second

// Answer writes an answer as long as its client goes on taking it.
func Answer(w http.ResponseWriter, limit time.Duration) io.Writer {
	return &writer{w, http.NewResponseController(w), limit}
}

type writer struct {
	io.Writer
	control *http.ResponseController
	limit   time.Duration
}

// Write implements io.Writer.
func (w *writer) Write(b []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.limit)) // where there is none, it is as before
	return w.Writer.Write(b)
}
