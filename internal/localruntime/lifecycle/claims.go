package lifecycle

import (
	"sync"
	"time"
)

// claims are the ids under which clients say that they record what they do.
// Each stands for one act.
type claims struct {
	mu   sync.Mutex
	made map[string]time.Time
}

const maxClaims = 4096

// first reports whether an id was not claimed within the time in which the
// record of one act may be taken for that of another.
func (c *claims) first(opID string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.made[opID]; ok && now.Sub(at) < 2*claimLife {
		return false
	}
	if c.made == nil || len(c.made) >= maxClaims {
		c.made = map[string]time.Time{}
	}
	c.made[opID] = now
	return true
}
