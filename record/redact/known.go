package redact

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/glassboxhq/glassbox/sandbox"
)

// known are secrets of which only the hash is known. They are looked for at
// every place: a checksum that goes along with the stream tells where a hash is
// worth its time.
type known struct {
	lengths []*length // the longest first
}

// length holds the secrets of one length.
type length struct {
	n     int
	power uint32               // factor^(n-1): what the first byte of a span adds to its sum
	any   bool                 // one has no checksum
	check [1 << 16 / 64]uint64 // checksums
	sums  map[[sha256.Size]byte]bool
}

const factor = 0x01000193

func sum(b []byte) (h uint32) {
	for _, c := range b {
		h = h*factor + uint32(c) + 1
	}
	return h
}

func checkOf(b []byte) uint16 { return uint16(sum(b) >> 16) }

func newKnown(secrets []Secret) (*known, error) {
	if len(secrets) > maxKnown {
		return nil, sandbox.Invalid("redaction.known", fmt.Sprintf("must be at most %d", maxKnown))
	}
	k := &known{}
	byLength := map[int]*length{}
	for i, secret := range secrets {
		raw, err := hex.DecodeString(secret.SHA256)
		if err != nil || len(raw) != sha256.Size {
			return nil, sandbox.Invalid(fmt.Sprintf("redaction.known[%d].sha256", i), "must be 64 hex digits")
		}
		n := secret.Length
		if n < minKnownLength || n > maxKnownLength {
			return nil, sandbox.Invalid(fmt.Sprintf("redaction.known[%d].length", i), fmt.Sprintf("must be between %d and %d", minKnownLength, maxKnownLength))
		}
		l := byLength[n]
		if l == nil {
			l = &length{n: n, power: 1, sums: map[[sha256.Size]byte]bool{}}
			for range n - 1 {
				l.power *= factor
			}
			byLength[n] = l
			k.lengths = append(k.lengths, l)
		}
		l.sums[[sha256.Size]byte(raw)] = true
		if secret.Check == nil {
			l.any = true
		} else {
			l.check[*secret.Check>>6] |= 1 << (*secret.Check & 63)
		}
	}
	if len(k.lengths) == 0 {
		return nil, nil
	}
	slices.SortFunc(k.lengths, func(a, b *length) int { return b.n - a.n })
	return k, nil
}

type knownStage struct {
	known *known
	held  []byte
}

// place is where a secret was found.
type place struct{ at, n int }

func (s *knownStage) write(dst, p []byte, last bool) (out []byte, masked int) {
	b := append(s.held, p...)
	// A secret may begin wherever the longest would still end in what is there.
	limit := len(b) - s.known.lengths[0].n + 1
	if last {
		limit = len(b)
	}
	if limit <= 0 {
		s.held = b
		return dst, 0
	}
	var found []place
	for _, l := range s.known.lengths {
		found = l.search(b, limit, found)
	}
	slices.SortFunc(found, func(a, b place) int { return cmp.Or(a.at-b.at, b.n-a.n) })
	at := 0
	for _, f := range found { // the first, and of those the longest
		if f.at >= at {
			cover(b[f.at : f.at+f.n])
			at, masked = f.at+f.n, masked+1
		}
	}
	at = max(at, limit)
	dst = append(dst, b[:at]...)
	s.held = append([]byte(nil), b[at:]...)
	return dst, masked
}

// search finds the secrets of this length that begin before limit.
func (l *length) search(b []byte, limit int, found []place) []place {
	limit = min(limit, len(b)-l.n+1)
	if limit <= 0 {
		return found
	}
	h := sum(b[:l.n])
	for at := 0; ; at++ {
		if l.any || l.check[h>>22]>>(h>>16&63)&1 != 0 {
			if l.sums[sha256.Sum256(b[at:at+l.n])] {
				found = append(found, place{at, l.n})
			}
		}
		if at+1 == limit {
			return found
		}
		h = (h-(uint32(b[at])+1)*l.power)*factor + uint32(b[at+l.n]) + 1
	}
}
