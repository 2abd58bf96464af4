// Package redact masks secrets in what a history keeps. It works on the stored
// copy only; what a client gets is never touched.
//
//	masker, err := redact.New(&redact.Rules{Patterns: []string{`corp-[0-9a-f]{32}`}})
//	stored, n := masker.Text("curl -H 'Authorization: Bearer …'")
//	stream := masker.Stream()                  // of output that comes in pieces
//	stored, n = stream.Write(nil, piece)       // may hold back a bounded tail
//	stored, n = stream.Flush(nil)
//
// Rules are data: they cross processes. A mask has the length of what it hides,
// so offsets hold, and a secret is masked however the pieces cut it.
package redact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Rules say what is masked. The zero value is every detector and nothing else.
type Rules struct {
	// Off masks nothing.
	Off bool `json:"off,omitempty"`
	// Skip leaves out detectors, by their names: see [Detectors].
	Skip []string `json:"skip,omitempty"`
	// Patterns are RE2 expressions whose matches are masked, up to 4 KiB each.
	// They see one line at a time.
	Patterns []string `json:"patterns,omitempty"`
	// Known are secrets that are known by their hash.
	Known []Secret `json:"known,omitempty"`
}

// Secret is a known secret that is not told: see [Hash].
type Secret struct {
	SHA256 string `json:"sha256"` // in hex
	Length int    `json:"length"` // in bytes, 8 to 4096
	// Check is a checksum that saves hashing each position of the output: 16
	// bits of the secret, none: it is looked for slowly.
	Check *uint16 `json:"check,omitempty"`
}

// Hash describes a secret by its hash. Who reads the description can try
// guesses: a short or common password is not hidden by it.
func Hash(secret string) Secret {
	sum := sha256.Sum256([]byte(secret))
	check := checkOf([]byte(secret))
	return Secret{SHA256: hex.EncodeToString(sum[:]), Length: len(secret), Check: &check}
}

// The bounds of rules.
const (
	maxPatterns    = 64
	maxPattern     = 1024
	maxKnown       = 256
	minKnownLength = 8
	maxKnownLength = 4096
)

// Mask is what hides a byte.
const Mask = '*'

// Masker masks by rules. It may be used by many goroutines at once.
type Masker struct {
	off      bool
	table    *table
	patterns []*regexp.Regexp
	known    *known // nil: none
}

// New compiles rules; nil is the defaults. An error names the rule.
func New(rules *Rules) (*Masker, error) {
	if rules == nil {
		rules = &Rules{}
	}
	m := &Masker{off: rules.Off}
	for i, name := range rules.Skip {
		if !slices.Contains(Detectors(), name) {
			return nil, sandbox.Invalid(fmt.Sprintf("redaction.skip[%d]", i), "must be one of "+strings.Join(Detectors(), ", "))
		}
	}
	m.table = newTable(rules.Skip)
	if len(rules.Patterns) > maxPatterns {
		return nil, sandbox.Invalid("redaction.patterns", fmt.Sprintf("must be at most %d", maxPatterns))
	}
	for i, text := range rules.Patterns {
		field := fmt.Sprintf("redaction.patterns[%d]", i)
		if text == "" || len(text) > maxPattern {
			return nil, sandbox.Invalid(field, fmt.Sprintf("must be 1 to %d bytes", maxPattern))
		}
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, sandbox.Invalid(field, "must be an RE2 expression: "+reason(err))
		}
		m.patterns = append(m.patterns, re)
	}
	var err error
	m.known, err = newKnown(rules.Known)
	return m, err
}

// reason is what is wrong with an expression, without the expression, which
// may hold what is to be hidden.
func reason(err error) string {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return e.Code.String()
	}
	return "it cannot be read"
}

// Validate tells what of rules cannot be; nil is the defaults.
func (r *Rules) Validate() error {
	_, err := New(r)
	return err
}

// Off reports whether nothing is masked.
func (m *Masker) Off() bool { return m == nil || m.off }

// Text masks a whole text, and counts what was masked.
func (m *Masker) Text(s string) (string, int) {
	if m.Off() || s == "" || !m.suspects(s) {
		return s, 0
	}
	stream := m.Stream()
	out, first := stream.Write(make([]byte, 0, len(s)), []byte(s))
	out, last := stream.Flush(out)
	if first+last == 0 {
		return s, 0
	}
	return string(out), first + last
}

// Word masks a word that is one of ours or of a few: patterns, which are about
// the texts of who acts, leave it alone.
func (m *Masker) Word(s string) (string, int) { return m.own().Text(s) }

// own masks what is ours.
func (m *Masker) own() *Masker {
	if m.Off() {
		return m
	}
	return &Masker{table: m.table, known: m.known}
}

// suspects reports whether a text may hold something to mask.
func (m *Masker) suspects(s string) bool {
	return m.known != nil || len(m.patterns) > 0 || m.table.next([]byte(s), 0, true) < len(s)
}

// Stream masks one stream of output, piece by piece. It is used by one
// goroutine at a time.
type Stream struct {
	stages []stage
	raw    []byte // what was written and has not come out
	spare  []byte
}

// stage masks what one kind of rule finds. It holds back what it cannot decide
// yet, and never more than maxHeld.
type stage interface {
	// write takes the next bytes, which it may change, and appends to dst what
	// has been decided; last tells that no more come.
	write(dst, p []byte, last bool) (out []byte, masked int)
}

// MaxHeld bounds what a stream holds back, in bytes.
const MaxHeld = maxKnownLength + maxDetected + window

// Stream returns the masks of a new stream, or nil if nothing is masked.
func (m *Masker) Stream() *Stream {
	if m.Off() {
		return nil
	}
	s := &Stream{}
	if m.known != nil {
		s.stages = append(s.stages, &knownStage{known: m.known})
	}
	s.stages = append(s.stages, &detectStage{table: m.table})
	if len(m.patterns) > 0 {
		s.stages = append(s.stages, &patternStage{patterns: m.patterns})
	}
	return s
}

// Write takes the next piece and appends what has been decided to dst. It
// counts the secrets that it masked.
func (s *Stream) Write(dst, p []byte) (out []byte, masked int) { return s.write(dst, p, false) }

// Flush appends what was held back: there will be no more.
func (s *Stream) Flush(dst []byte) (out []byte, masked int) { return s.write(dst, nil, true) }

// Cut is Flush where the stream was cut: more came, and is not kept. A tail
// that may be the beginning of a secret is masked.
func (s *Stream) Cut(dst []byte) (out []byte, masked int) {
	for _, stage := range s.stages {
		if d, ok := stage.(*detectStage); ok {
			d.cut = true
		}
	}
	return s.Flush(dst)
}

func (s *Stream) write(dst, p []byte, last bool) (out []byte, masked int) {
	s.raw = append(s.raw, p...)
	before := len(dst)
	p = append(s.spare[:0], p...) // the stages change it
	for i, stage := range s.stages {
		var n int
		if i == len(s.stages)-1 {
			dst, n = stage.write(dst, p, last)
		} else {
			p, n = stage.write(nil, p, last)
		}
		masked += n
	}
	if cap(p) > cap(s.spare) {
		s.spare = p
	}
	s.raw = append(s.raw[:0], s.raw[len(dst)-before:]...)
	return dst, masked
}

// Held returns what is held back, as it was written. It is valid until the
// next call.
func (s *Stream) Held() []byte { return s.raw }
