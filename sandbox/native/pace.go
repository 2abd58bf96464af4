package native

import "time"

// pacer lets a pipe fill while a program prints without pause: to take each of
// its writes by itself would cost more than the program does, and everything
// behind would handle as many small pieces.
type pacer struct {
	last  time.Time // when the last read returned
	quick int       // reads in a row that found little, and found it at once
	full  bool      // the last one found more than it took
	timer *time.Timer
}

const (
	paceQuick = 300 * time.Microsecond
	paceAfter = 4
	paceWait  = time.Millisecond
)

// read is told of what a read returned.
func (p *pacer) read(n int) {
	now := time.Now()
	p.full = n == readBytes
	switch {
	case p.full:
	case now.Sub(p.last) < paceQuick:
		p.quick++
	default:
		p.quick = 0
	}
	p.last = now
}

// wait comes before a read. It ends at once when the program has.
func (p *pacer) wait(exited <-chan struct{}) {
	if p.full || p.quick < paceAfter {
		return
	}
	if p.timer == nil {
		p.timer = time.NewTimer(paceWait)
	} else {
		p.timer.Reset(paceWait)
	}
	select {
	case <-p.timer.C:
	case <-exited:
		p.timer.Stop()
		p.quick = 0
	}
	p.last = time.Now()
}
