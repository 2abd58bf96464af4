// Package matrix knows the public clients that are run against us, what came
// of it, and the table that tells it.
//
// Results say what happened; [Known] says what may. A step that fails without
// being known fails the run, and so does a known one that passes: what stands
// in the table is true.
package matrix

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// Way is how a client reaches a sandbox.
type Way string

// The ways.
const (
	Direct Way = "directly"
	Proxy  Way = "by proxy" // of the server
)

// Ways lists both, in the order of the table.
var Ways = []Way{Direct, Proxy}

// Results are what the last runs came to, by the client's name.
type Results map[string]map[Way]*Result

// Result is what one scenario came to.
type Result struct {
	Passed int      `json:"passed"`
	Failed []string `json:"failed,omitempty"` // names of steps, sorted
}

// Same reports whether two runs came to the same.
func (r *Result) Same(other *Result) bool {
	return r != nil && other != nil && r.Passed == other.Passed && slices.Equal(r.Failed, other.Failed)
}

// Set keeps what a run came to.
func (r Results) Set(client string, way Way, result *Result) {
	if r[client] == nil {
		r[client] = map[Way]*Result{}
	}
	r[client][way] = result
}

// Clone returns results that can be changed by themselves.
func (r Results) Clone() Results {
	clone := Results{}
	for name, ways := range r {
		clone[name] = maps.Clone(ways)
	}
	return clone
}

// Read reads results. A file that is not there holds none.
func Read(name string) (Results, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Results{}, nil
	}
	if err != nil {
		return nil, err
	}
	r := Results{}
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return r, nil
}

// Write writes results.
func (r Results) Write(name string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(data, '\n'), 0o644)
}

// Changes tells, line by line, what differs from older results. Clients that
// were not run do not.
func (r Results) Changes(older Results) []string {
	var lines []string
	for _, c := range Clients {
		for _, way := range Ways {
			now, was := r[c.Name][way], older[c.Name][way]
			if now == nil || now.Same(was) {
				continue
			}
			if was == nil {
				was = &Result{}
			}
			lines = append(lines, fmt.Sprintf("%s %s: %s -> %s%s", c.Name, way, was.count(), now.count(), moved(was, now)))
		}
	}
	return lines
}

func (r *Result) count() string { return fmt.Sprintf("%d of %d", r.Passed, r.Passed+len(r.Failed)) }

func moved(was, now *Result) string {
	var b strings.Builder
	for _, step := range now.Failed {
		if !slices.Contains(was.Failed, step) {
			b.WriteString(", fails: " + step)
		}
	}
	for _, step := range was.Failed {
		if !slices.Contains(now.Failed, step) {
			b.WriteString(", fails no more: " + step)
		}
	}
	return b.String()
}

// Unexpected tells what is not as [Known] says.
func (r Results) Unexpected() []string {
	var lines []string
	for _, c := range Clients {
		for _, way := range Ways {
			if result := r[c.Name][way]; result != nil {
				lines = append(lines, c.unexpected(way, result)...)
			}
		}
	}
	return lines
}

func (c *Client) unexpected(way Way, result *Result) []string {
	var lines []string
	for _, step := range result.Failed {
		if c.Why(step) == "" {
			lines = append(lines, fmt.Sprintf("%s %s: %s fails", c.Name, way, step))
		}
	}
	for _, k := range Known {
		if slices.Contains(k.Clients, c.Name) && !slices.Contains(result.Failed, k.Step) {
			lines = append(lines, fmt.Sprintf("%s %s: %s passes, and is known to fail: take it out of the list of known failures", c.Name, way, k.Step))
		}
	}
	return lines
}
