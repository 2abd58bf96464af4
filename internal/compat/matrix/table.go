package matrix

import (
	"fmt"
	"strings"
)

// Markdown returns the table: what passed, and of what failed the reason.
func (r Results) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| client | %s | %s | what fails, and why |\n| --- | --- | --- | --- |\n", Direct, Proxy)
	for _, c := range Clients {
		fmt.Fprintf(&b, "| %s |", c.Title)
		for _, way := range Ways {
			fmt.Fprintf(&b, " %s |", cell(r[c.Name][way]))
		}
		b.WriteString(c.reasons(r[c.Name]) + " |\n")
	}
	return b.String()
}

func cell(result *Result) string {
	switch {
	case result == nil:
		return "not run"
	case len(result.Failed) > 0:
		return result.count() + " ✗"
	default:
		return result.count()
	}
}

// Text returns the rows that were run, for a terminal.
func (r Results) Text() string {
	var b strings.Builder
	for _, c := range Clients {
		if r[c.Name] == nil {
			continue
		}
		fmt.Fprintf(&b, "%-30s", c.Name)
		for _, way := range Ways {
			fmt.Fprintf(&b, "  %s %-10s", way, cell(r[c.Name][way]))
		}
		b.WriteString(c.reasons(r[c.Name]) + "\n")
	}
	return b.String()
}

// reasons lists the steps that fail, those of one reason together.
func (c *Client) reasons(runs map[Way]*Result) string {
	var order []string
	steps := map[string][]string{}
	seen := map[string]bool{}
	for _, way := range Ways {
		if runs[way] == nil {
			continue
		}
		for _, step := range runs[way].Failed {
			why := c.Why(step)
			if why == "" {
				why = "not looked into yet"
			}
			if len(steps[why]) == 0 {
				order = append(order, why)
			}
			if !seen[step] {
				steps[why] = append(steps[why], "`"+step+"`")
			}
			seen[step] = true
		}
	}
	var parts []string
	for _, why := range order {
		parts = append(parts, strings.Join(steps[why], ", ")+": "+why)
	}
	if len(parts) == 0 {
		return ""
	}
	return " " + strings.Join(parts, "; ")
}
