package recorder

import (
	"io"
	"net/http"
	"time"

	"github.com/glassboxhq/glassbox/internal/idle"
)

// idleClient is how long a client that sends or takes the content of files may
// do nothing: it keeps others from working meanwhile.
const idleClient = 5 * time.Minute

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
		r.Body = idle.Body(w, body, s.opts.Idle)
		if err := handle(w, r); err != nil {
			s.opts.Logger.DebugContext(r.Context(), "request refused", "path", r.URL.Path, "error", err)
			writeFault(w, err)
		}
		if control.Flush() == nil && control.SetReadDeadline(time.Now().Add(idle.LetPass)) == nil {
			_, _ = io.Copy(io.Discard, body)
		}
		return nil
	}
}
