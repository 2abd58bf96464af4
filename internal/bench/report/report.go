// Package report holds what the measurements found: rows of arms, how sure a
// ratio is, what it may be, and the file and the tables that tell it.
//
// A ratio is that of the medians of two arms. Its interval comes from drawing
// whole rounds again (see [Compare]), as what disturbs a machine disturbs all
// that runs at that moment. A verdict is taken by the end of the interval that
// speaks for us, so that noise fails nothing.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Report is one run of the measurements.
type Report struct {
	Machine Machine   `json:"machine"`
	Date    time.Time `json:"date"`
	Commit  string    `json:"commit"` // with "+changes" for a tree that is not as committed
	Seed    uint64    `json:"seed"`   // of the order of the arms
	Short   bool      `json:"short,omitempty"`
	Rows    []*Row    `json:"rows"`
}

// Machine is where the measurements ran.
type Machine struct {
	CPU         string  `json:"cpu"`
	Cores       int     `json:"cores"`
	MemoryBytes int64   `json:"memory_bytes"`
	OS          string  `json:"os"`
	Kernel      string  `json:"kernel"`
	Go          string  `json:"go"`
	Runsc       string  `json:"runsc,omitempty"`
	Docker      string  `json:"docker,omitempty"` // of a real OpenSandbox server, and its own version
	Load        float64 `json:"load"`             // of the minute before
}

// Kind says what a row is for.
type Kind string

// The kinds of rows.
const (
	Ratio    Kind = "ratio"    // the first arm against the second: may fail the run
	Absolute Kind = "absolute" // the first arm against a number: fails nothing
	Reported Kind = "reported" // has no budget
)

// Row is one measure.
type Row struct {
	Name     string    `json:"name"`
	Measure  string    `json:"measure"`
	Kind     Kind      `json:"kind"`
	Unit     string    `json:"unit"`
	Arms     []*Arm    `json:"arms"`
	Interval *Interval `json:"ratio,omitempty"`
	Budget   *Budget   `json:"budget,omitempty"`
	Verdict  Verdict   `json:"verdict,omitempty"`
	Notes    []string  `json:"notes,omitempty"` // what was found beside
}

// Arm is one of the things that are compared.
type Arm struct {
	Name    string  `json:"name"`
	Samples int     `json:"samples"`
	P50     float64 `json:"p50"`
}

// Interval is a ratio of medians with its 95 % bootstrap interval.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Budget is the most that is allowed, or the least.
type Budget struct {
	Value   float64 `json:"value"`
	AtLeast bool    `json:"at_least,omitempty"`
}

// Verdict tells whether a row is within its budget.
type Verdict string

// The verdicts.
const (
	OK        Verdict = "ok"
	OverMaybe Verdict = "over?" // the median is over, a part of the interval is not
	Over      Verdict = "over"
)

// Judge sets the verdict. That of a ratio is over only when its whole interval
// is.
func (r *Row) Judge() {
	if r.Budget == nil {
		return
	}
	value := r.Arms[0].P50
	best := value
	if r.Interval != nil {
		value, best = r.Interval.Value, r.Interval.Low
		if r.Budget.AtLeast {
			best = r.Interval.High
		}
	}
	switch {
	case r.Budget.holds(value):
		r.Verdict = OK
	case r.Budget.holds(best):
		r.Verdict = OverMaybe
	default:
		r.Verdict = Over
	}
}

func (b *Budget) holds(value float64) bool {
	if b.AtLeast {
		return value >= b.Value
	}
	return value <= b.Value
}

// Failed returns the ratio rows that are over their budget.
func (r *Report) Failed() []*Row {
	var failed []*Row
	for _, row := range r.Rows {
		if row.Kind == Ratio && row.Verdict == Over {
			failed = append(failed, row)
		}
	}
	return failed
}

// Read reads a report from a file.
func Read(name string) (*Report, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var r Report
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return &r, nil
}

// Write writes the report into a file, whole or not at all.
func (r *Report) Write(name string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return err
	}
	part := filepath.Join(filepath.Dir(name), ".new-"+filepath.Base(name))
	if err := os.WriteFile(part, b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(part, name)
}
