// Package id makes the identifiers of operations, correlations and sandboxes: UUIDs.
package id

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"
)

// clock is the last moment that New handed out, so that the ids of one
// process sort in the order in which they were made.
var clock struct {
	sync.Mutex
	ms  int64
	seq uint16
}

// New returns a UUIDv7 (RFC 9562): it sorts by the time it was made, and two
// ids of one process sort in the order of the calls.
func New() string {
	var u [16]byte
	rand.Read(u[:]) // never fails, see crypto/rand

	clock.Lock()
	if now := time.Now().UnixMilli(); now > clock.ms {
		clock.ms, clock.seq = now, uint16(u[6])<<8|uint16(u[7])
		clock.seq &= 0x7ff // the upper half is room to count in
	} else if clock.seq++; clock.seq > 0xfff {
		clock.ms, clock.seq = clock.ms+1, 0
	}
	ms, seq := clock.ms, clock.seq
	clock.Unlock()

	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6], u[7] = 0x70|byte(seq>>8), byte(seq)
	u[8] = 0x80 | u[8]&0x3f
	return format(u)
}

// NewRandom returns a UUIDv4, as OpenSandbox gives its sandboxes.
func NewRandom() string {
	var u [16]byte
	rand.Read(u[:])
	u[6] = 0x40 | u[6]&0x0f
	u[8] = 0x80 | u[8]&0x3f
	return format(u)
}

// Valid reports whether s is a UUID in its usual form: lower-case hex digits
// in five groups.
func Valid(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case c < '0' || c > 'f' || c > '9' && c < 'a':
			return false
		}
	}
	return true
}

func format(u [16]byte) string {
	var s [36]byte
	hex.Encode(s[0:8], u[0:4])
	hex.Encode(s[9:13], u[4:6])
	hex.Encode(s[14:18], u[6:8])
	hex.Encode(s[19:23], u[8:10])
	hex.Encode(s[24:], u[10:])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}
