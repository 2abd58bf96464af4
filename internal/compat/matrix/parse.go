package matrix

import (
	"fmt"
	"slices"
	"strings"
)

// Parse reads what a scenario printed: a line for each step, and in the last
// one how many passed and failed. It also returns the reasons of the steps that
// failed. Output that does not add up is an error, as of a scenario that died.
func Parse(output string) (*Result, map[string]string, error) {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	result, reasons, seen := &Result{}, map[string]string{}, map[string]bool{}
	for _, line := range lines[:len(lines)-1] {
		verdict, rest, _ := strings.Cut(line, " ")
		name, reason, _ := strings.Cut(rest, ":")
		switch verdict {
		case "ok":
			result.Passed++
		case "FAIL":
			result.Failed = append(result.Failed, name)
			reasons[name] = strings.TrimSpace(reason)
		default:
			continue // a client may say something, too
		}
		if seen[name] {
			return nil, nil, fmt.Errorf("the step %s stands there twice", name)
		}
		seen[name] = true
	}
	want := fmt.Sprintf("%d passed, %d failed", result.Passed, len(result.Failed))
	if got := lines[len(lines)-1]; got != want {
		return nil, nil, fmt.Errorf("the last line is %q, want %q", got, want)
	}
	slices.Sort(result.Failed)
	return result, reasons, nil
}
