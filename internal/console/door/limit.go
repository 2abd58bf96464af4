package door

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// pace is how often something may be tried: some times at once, then at a
// distance.
type pace struct {
	burst int
	every time.Duration
}

// Who comes from one address may have many accounts, an account is tried from
// many addresses.
var (
	perAddress = pace{burst: 30, every: 2 * time.Second}
	perAccount = pace{burst: 10, every: 10 * time.Second}
)

// limiter counts attempts by key. It forgets the keys that were not used for
// longest when there are many, and so needs no clean-up.
type limiter struct {
	pace pace

	mu          sync.Mutex
	young, aged map[string]*rate.Limiter
}

// maxYoung keys are remembered at least.
const maxYoung = 10_000

func newLimiter(p pace) *limiter {
	return &limiter{pace: p, young: map[string]*rate.Limiter{}}
}

// wait takes one attempt, or tells how long to wait for the next.
func (l *limiter) wait(key string, now time.Time) time.Duration {
	r := l.of(key).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

func (l *limiter) of(key string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.young[key]
	if known == nil {
		known = l.aged[key]
	}
	if known == nil {
		known = rate.NewLimiter(rate.Every(l.pace.every), l.pace.burst)
	}
	if len(l.young) >= maxYoung {
		l.young, l.aged = map[string]*rate.Limiter{}, l.young
	}
	l.young[key] = known
	return known
}

// network is what an address is counted by: in IPv6 a host has as many
// addresses as it likes.
func network(address string) string {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(addr, bits).Masked().String()
}
