package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Print writes the report for a terminal.
func (r *Report) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "row\tarm\tn\tP50\tratio [95 %]\tbudget\tverdict")
	for _, row := range r.Rows {
		for i, arm := range row.Arms {
			head, tail := "", "\t\t"
			if i == 0 {
				head, tail = row.Name, row.ratio()+"\t"+row.budget()+"\t"+string(row.Verdict)
			}
			fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", head, arm.Name, arm.Samples, Amount(arm.P50, row.Unit), tail)
		}
		for _, note := range row.Notes {
			fmt.Fprintf(t, "\t  %s\t\t\t\t\t\n", note)
		}
	}
	fmt.Fprintf(t, "\n%s\n", r.where())
	return t.Flush()
}

// Markdown is the report as the README shows it.
func (r *Report) Markdown() string {
	var b strings.Builder
	b.WriteString("| measure | P50 | ratio [95 %] | budget | |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range r.Rows {
		parts := make([]string, 0, len(row.Arms))
		for _, arm := range row.Arms {
			parts = append(parts, arm.Name+" "+Amount(arm.P50, row.Unit))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n",
			cell(row.Measure), cell(strings.Join(parts, "; ")), row.ratio(), row.budget(), row.Verdict)
	}
	b.WriteString("\n" + howJudged + "\n" + r.where() + "\n")
	return b.String()
}

const howJudged = `A ratio is that of the medians of two arms that took turns in one run, with its 95 % bootstrap interval. It is *over* when
the whole interval is, and *over?* when its value is and a part of the interval is not; only *over* fails ` + "`make bench`" + `. Rows
with a number instead of a ratio depend on the machine and fail nothing.`

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func (r *Row) ratio() string {
	if r.Interval == nil {
		return ""
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", r.Interval.Value, r.Interval.Low, r.Interval.High)
}

func (r *Row) budget() string {
	if r.Budget == nil {
		return ""
	}
	sign, amount := "≤", Amount(r.Budget.Value, r.Unit)
	if r.Budget.AtLeast {
		sign = "≥"
	}
	if r.Interval != nil {
		amount = strconv.FormatFloat(r.Budget.Value, 'f', -1, 64)
	}
	return sign + amount
}

func (r *Report) where() string {
	m := r.Machine
	runtime := m.Docker
	if runtime == "" {
		runtime = "runsc " + m.Runsc
	}
	text := fmt.Sprintf("%s, %d cores, %d GiB, %s, Linux %s, %s, %s, load %.1f before; %s, commit %s.",
		m.CPU, m.Cores, (m.MemoryBytes+1<<29)>>30, m.OS, m.Kernel, m.Go, runtime, m.Load, r.Date.Format(time.DateOnly), r.Commit)
	if r.Short {
		text += " A short run."
	}
	return text
}

// The units of rows.
const (
	Seconds   = "s"
	PerSecond = "operations/s"
	Rate      = "MiB/s"
	Bytes     = "B"
	Requests  = "requests"
)

// Amount writes a value for people.
func Amount(value float64, unit string) string {
	switch {
	case unit == Seconds && value < 0.001:
		return fmt.Sprintf("%.0f µs", value*1e6)
	case unit == Seconds && value < 0.1:
		return fmt.Sprintf("%.2f ms", value*1e3)
	case unit == Seconds && value < 1:
		return fmt.Sprintf("%.0f ms", value*1e3)
	case unit == Seconds:
		return fmt.Sprintf("%.2f s", value)
	case unit == Bytes:
		return fmt.Sprintf("%.1f MiB", value/(1<<20))
	case unit == Requests:
		return grouped(int64(value))
	case unit == PerSecond:
		return grouped(int64(value)) + "/s"
	}
	return fmt.Sprintf("%.0f %s", value, unit)
}

// grouped writes a number in groups of three digits.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}
