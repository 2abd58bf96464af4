package report_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/internal/bench/report"
)

func TestJudge(t *testing.T) {
	ratio := func(value, low, high float64) *report.Interval {
		return &report.Interval{Value: value, Low: low, High: high}
	}
	for _, tt := range []struct {
		name     string
		p50      float64
		interval *report.Interval
		budget   *report.Budget
		want     report.Verdict
	}{
		{"within", 1, ratio(1.1, 0.9, 1.4), &report.Budget{Value: 1.25}, report.OK},
		{"median over", 1, ratio(1.3, 1.2, 1.4), &report.Budget{Value: 1.25}, report.OverMaybe},
		{"all over", 1, ratio(1.4, 1.3, 1.5), &report.Budget{Value: 1.25}, report.Over},
		{"enough", 1, ratio(0.8, 0.6, 0.9), &report.Budget{Value: 0.7, AtLeast: true}, report.OK},
		{"median not enough", 1, ratio(0.6, 0.5, 0.75), &report.Budget{Value: 0.7, AtLeast: true}, report.OverMaybe},
		{"not enough", 1, ratio(0.5, 0.4, 0.6), &report.Budget{Value: 0.7, AtLeast: true}, report.Over},
		{"absolute", 0.3, nil, &report.Budget{Value: 0.4}, report.OK},
		{"absolute over", 0.5, nil, &report.Budget{Value: 0.4}, report.Over},
		{"no budget", 0.5, nil, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			row := &report.Row{Arms: []*report.Arm{{P50: tt.p50}}, Interval: tt.interval, Budget: tt.budget}
			if row.Judge(); row.Verdict != tt.want {
				t.Errorf("got %q, want %q", row.Verdict, tt.want)
			}
		})
	}
}

func TestFailed(t *testing.T) {
	r := &report.Report{Rows: []*report.Row{
		{Name: "a", Kind: report.Ratio, Verdict: report.Over},
		{Name: "b", Kind: report.Ratio, Verdict: report.OverMaybe},
		{Name: "c", Kind: report.Absolute, Verdict: report.Over},
	}}
	if failed := r.Failed(); len(failed) != 1 || failed[0].Name != "a" {
		t.Errorf("got %v, want the ratio that is over", failed)
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		name    string
		samples []float64
		want    float64
	}{
		{"none", nil, 0},
		{"odd", []float64{3, 1, 2}, 2},
		{"even", []float64{4, 1, 3, 2}, 2.5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := report.Median(tt.samples); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// Both arms suffer in the same rounds: the interval of their ratio stays
// narrow, however wild the rounds are.
func TestCompare(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var a, b report.Rounds
	for range 30 {
		slow := 1 + 4*rng.Float64()
		a = append(a, []float64{2 * slow})
		b = append(b, []float64{slow})
	}
	got := report.Compare(a, b, rng)
	if got.Value < 1.99 || got.Value > 2.01 || got.Low < 1.99 || got.High > 2.01 {
		t.Errorf("got %+v, want 2", got)
	}
}

func TestWriteAndRead(t *testing.T) {
	want := &report.Report{
		Machine: report.Machine{CPU: "a CPU", Cores: 2}, Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Commit: "abc", Seed: 1,
		Rows: []*report.Row{{
			Name: "exec", Measure: "a|b", Kind: report.Ratio, Unit: report.Seconds,
			Arms:     []*report.Arm{{Name: "ours", Samples: 3, P50: 0.004}, {Name: "theirs", Samples: 3, P50: 0.002}},
			Interval: &report.Interval{Value: 2, Low: 1.9, High: 2.1}, Budget: &report.Budget{Value: 2}, Verdict: report.OK,
		}},
	}
	file := filepath.Join(t.TempDir(), "bench.json")
	if err := want.Write(file); err != nil {
		t.Fatal(err)
	}
	got, err := report.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	const line = `| a\|b | ours 4.00 ms; theirs 2.00 ms | 2.00 [1.90, 2.10] | ≤2 | ok |`
	if text := got.Markdown(); !strings.Contains(text, line+"\n") {
		t.Errorf("got %s, want %s", text, line)
	}
}

func TestAmount(t *testing.T) {
	for _, tt := range []struct {
		unit  string
		value float64
		want  string
	}{
		{report.Seconds, 0.000250, "250 µs"},
		{report.Seconds, 0.0042, "4.20 ms"},
		{report.Seconds, 0.4, "400 ms"},
		{report.Seconds, 1.5, "1.50 s"},
		{report.PerSecond, 20000, "20 000/s"},
		{report.Rate, 210.4, "210 MiB/s"},
		{report.Bytes, 1 << 20, "1.0 MiB"},
	} {
		if got := report.Amount(tt.value, tt.unit); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
