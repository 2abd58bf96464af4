package opensandbox

import (
	"net/http"
	"sync/atomic"
	"time"
)

// clock is the service's, as its answers tell it: a life that ends at a moment
// must not depend on how this machine's clock goes.
type clock struct {
	ahead atomic.Int64 // of ours, in nanoseconds
}

// clockGrain is how far the two may be apart and count as the same: an answer
// tells whole seconds, and takes some time to come.
const clockGrain = 2 * time.Second

// see takes the time of an answer to a request that was sent at a moment.
func (c *clock) see(h http.Header, sent time.Time) {
	theirs, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	ours := sent.Add(time.Since(sent) / 2)
	ahead := theirs.Add(time.Second / 2).Sub(ours)
	if ahead.Abs() < clockGrain {
		ahead = 0
	}
	c.ahead.Store(int64(ahead))
}

// Now is the time on the service's clock, as its last answer told it.
func (p *Provider) Now() time.Time { return time.Now().Add(time.Duration(p.clock.ahead.Load())) }
