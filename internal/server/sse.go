package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// sse writes server-sent events.
type sse struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// newSSE begins a stream of events.
func newSSE(w http.ResponseWriter) (*sse, error) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx holds nothing back
	e := &sse{w, http.NewResponseController(w)}
	return e, e.send("retry: 2000\n\n")
}

func (e *sse) event(name, id string, data any) error {
	text, err := json.Marshal(data) // one line: it escapes line breaks
	if err != nil {
		return err
	}
	place := ""
	if id != "" {
		place = "id: " + id + "\n"
	}
	return e.send(fmt.Sprintf("%sevent: %s\ndata: %s\n\n", place, name, text))
}

// alive tells a proxy on the way, and us, that the other end is there.
func (e *sse) alive() error { return e.send(": still here\n\n") }

func (e *sse) send(text string) error {
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // a recorder of a test has none
	if _, err := e.w.Write([]byte(text)); err != nil {
		return err
	}
	return e.control.Flush()
}
