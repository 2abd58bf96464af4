package recorder

import (
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// stopped remembers the commands that were told to stop before they were told
// to start: a proxy on the way may hold a request for a while after its client
// has given it up and asked for the end of the command.
type stopped struct {
	mu   sync.Mutex
	when map[string]time.Time
}

// What is remembered, and for how long.
const (
	maxStopped = 1024
	stoppedFor = time.Minute
)

func (s *stopped) add(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for id, at := range s.when {
		if now.Sub(at) > stoppedFor {
			delete(s.when, id)
		}
	}
	if s.when == nil {
		s.when = map[string]time.Time{}
	}
	if len(s.when) < maxStopped {
		s.when[id] = now
	}
}

// check refuses a command that must not run.
func (s *stopped) check(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.when[id]; !ok || time.Since(at) > stoppedFor {
		return nil
	}
	return &sandbox.Error{Op: "start command", Code: sandbox.CodeCancelled, Message: "it was stopped before it began"}
}
