package lifecycle

import (
	"sync"
	"time"
)

// renewals tells which renewals say something new. There are clients that renew
// after each of their acts, by the same time: that is told once a minute.
type renewals struct {
	mu   sync.Mutex
	last map[string]renewal // by sandbox and client
}

type renewal struct {
	at   time.Time
	left time.Duration
}

const (
	renewalEvery = time.Minute
	renewalAlike = 5 * time.Second // by how much the time that is left may differ
	maxRenewals  = 4096            // what is forgotten is told again
)

// news reports whether who has renewed to a time has not done the same within
// the last minute.
func (n *renewals) news(who string, until, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	left := until.Sub(now)
	last, ok := n.last[who]
	if ok && now.Sub(last.at) < renewalEvery && (left-last.left).Abs() < renewalAlike {
		return false
	}
	if n.last == nil || len(n.last) >= maxRenewals {
		n.last = map[string]renewal{}
	}
	n.last[who] = renewal{now, left}
	return true
}
