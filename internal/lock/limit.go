package lock

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrTimeout says that a turn did not come in time.
var ErrTimeout = errors.New("the wait for a turn has timed out")

// Limit lets a number of callers work at once; the others wait, first come
// first served.
type Limit struct {
	most    int
	timeout time.Duration

	mu      sync.Mutex
	working int
	queue   []chan struct{} // closed when its caller's turn has come
}

// NewLimit lets most callers work at once. Who waits longer than the timeout
// gets ErrTimeout; 0: it waits as long as its context.
func NewLimit(most int, timeout time.Duration) *Limit {
	return &Limit{most: most, timeout: timeout}
}

// Enter waits for a turn, which lasts until leave is called, once.
func (l *Limit) Enter(ctx context.Context) (leave func(), err error) {
	l.mu.Lock()
	if l.working < l.most && len(l.queue) == 0 {
		l.working++
		l.mu.Unlock()
		return l.leave, nil
	}
	turn := make(chan struct{})
	l.queue = append(l.queue, turn)
	l.mu.Unlock()
	if err := wait(ctx, turn, l.timeout); err != nil {
		l.forget(turn)
		return nil, err
	}
	return l.leave, nil
}

// leave hands the turn on.
func (l *Limit) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.working--
		return
	}
	close(l.queue[0])
	l.queue = l.queue[1:]
}

// forget takes a caller out of the queue who no longer waits. If its turn came
// at that very moment, it is handed on.
func (l *Limit) forget(turn chan struct{}) {
	l.mu.Lock()
	for i, waiting := range l.queue {
		if waiting == turn {
			l.queue = append(l.queue[:i:i], l.queue[i+1:]...)
			l.mu.Unlock()
			return
		}
	}
	l.mu.Unlock()
	l.leave()
}

// wait waits for a turn, the timeout or the end of ctx.
func wait(ctx context.Context, turn <-chan struct{}, timeout time.Duration) error {
	var late <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-turn:
		return nil
	case <-late:
		return ErrTimeout
	case <-ctx.Done():
		return ctx.Err()
	}
}
