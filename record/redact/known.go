package redact

import (
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
	least   int
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
	k.least = k.lengths[len(k.lengths)-1].n
	return k, nil
}

// is reports whether a span with this sum is a secret.
func (l *length) is(h uint32, span []byte) bool {
	return (l.any || l.check[h>>22]>>(h>>16&63)&1 != 0) && l.sums[sha256.Sum256(span)]
}

type knownStage struct {
	known *known
	held  []byte
}

func (s *knownStage) write(dst, p []byte, last bool) (out []byte, masked int) {
	b := append(s.held, p...)
	most := s.known.lengths[0].n
	sums := make([]uint32, len(s.known.lengths))
	at := 0
	begin := func() { // sums the spans that begin here
		for i, l := range s.known.lengths {
			if at+l.n <= len(b) {
				sums[i] = sum(b[at : at+l.n])
			}
		}
	}
	for begin(); at+most <= len(b) || last && at+s.known.least <= len(b); {
		if n := s.find(b[at:], sums); n > 0 {
			masked++
			cover(b[at : at+n])
			at += n
			begin()
			continue
		}
		for i, l := range s.known.lengths {
			if at+l.n < len(b) {
				sums[i] = (sums[i]-(uint32(b[at])+1)*l.power)*factor + uint32(b[at+l.n]) + 1
			}
		}
		at++
	}
	if last {
		at = len(b)
	}
	dst = append(dst, b[:at]...)
	s.held = append([]byte(nil), b[at:]...)
	return dst, masked
}

// find returns the length of the secret with which b begins; 0: none does.
func (s *knownStage) find(b []byte, sums []uint32) int {
	for i, l := range s.known.lengths {
		if l.n <= len(b) && l.is(sums[i], b[:l.n]) {
			return l.n
		}
	}
	return 0
}
