package localruntime

import (
	"slices"
	"time"
)

// event is something that happened to a sandbox. Diagnostics tell it.
type event struct {
	At      time.Time `json:"at"`
	What    string    `json:"what"` // a word in capitals
	Message string    `json:"message,omitempty"`
}

// maxEvents of a sandbox are kept; the oldest go.
const maxEvents = 64

// happened adds an event to the record.
func (r *record) happened(at time.Time, what, message string) {
	kept := r.Events[max(0, len(r.Events)-maxEvents+1):]
	r.Events = append(slices.Clone(kept), event{at, what, message}) // the record before this one has its own
}
