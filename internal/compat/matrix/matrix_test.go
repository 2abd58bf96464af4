package matrix_test

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/internal/compat/matrix"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, output string
		want         *matrix.Result
		err          string
	}{
		{"passed", "ok a\nok b\n2 passed, 0 failed\n", &matrix.Result{Passed: 2}, ""},
		{"failed", "FAIL b: because: so\nok c\nFAIL a: x\n1 passed, 2 failed", &matrix.Result{Passed: 1, Failed: []string{"a", "b"}}, ""},
		{"a client speaks", "warning: old\nok a\n1 passed, 0 failed", &matrix.Result{Passed: 1}, ""},
		{"died", "ok a\nok b\n", nil, `the last line is "ok b", want "1 passed, 0 failed"`},
		{"counts wrongly", "ok a\n2 passed, 0 failed\n", nil, `the last line is "2 passed, 0 failed", want "1 passed, 0 failed"`},
		{"twice", "ok a\nFAIL a: x\n1 passed, 1 failed\n", nil, "the step a stands there twice"},
		{"nothing", "", nil, `the last line is "", want "0 passed, 0 failed"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, reasons, err := matrix.Parse(tt.output)
			if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("got %v, %s", err, diff)
			}
			if tt.name == "failed" && reasons["b"] != "because: so" {
				t.Errorf("got reasons %q", reasons)
			}
		})
	}
}

// Every name that stands in a list is one of a client, and stands there once.
func TestNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range matrix.Clients {
		if seen[c.Name] {
			t.Errorf("client %s stands there twice", c.Name)
		}
		seen[c.Name] = true
		for _, p := range c.Packages {
			if !strings.Contains(p, "==") {
				t.Errorf("client %s: %s has no exact version", c.Name, p)
			}
		}
	}
	failures := map[string]bool{}
	for _, k := range matrix.Known {
		for _, name := range k.Clients {
			if at := name + " " + k.Step; failures[at] {
				t.Errorf("known failure %s stands there twice", at)
			}
			failures[name+" "+k.Step] = true
			if matrix.Find(name) == nil || k.Reason == "" {
				t.Errorf("known failure %s of %s: no such client, or no reason", k.Step, name)
			}
		}
	}
}

// asKnown is what a client comes to when all is as it is known.
func asKnown(c *matrix.Client) *matrix.Result {
	r := &matrix.Result{Passed: 3}
	for _, k := range matrix.Known {
		if slices.Contains(k.Clients, c.Name) {
			r.Failed = append(r.Failed, k.Step)
		}
	}
	slices.Sort(r.Failed)
	return r
}

func TestUnexpected(t *testing.T) {
	t.Parallel()
	c := matrix.Find("sdk-0.1.16")
	known := asKnown(c)
	if len(known.Failed) == 0 {
		t.Fatal("this test needs a client of which a failure is known")
	}
	first := known.Failed[0]
	for _, tt := range []struct {
		name   string
		failed []string
		want   []string
	}{
		{"as known", known.Failed, nil},
		{"one more", append([]string{"a-new-one"}, known.Failed...), []string{"sdk-0.1.16 directly: a-new-one fails"}},
		{"one passes", known.Failed[1:], []string{"sdk-0.1.16 directly: " + first + " passes, and is known to fail: take it out of the list of known failures"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := matrix.Results{}
			r.Set(c.Name, matrix.Direct, &matrix.Result{Passed: 1, Failed: tt.failed})
			if diff := cmp.Diff(tt.want, r.Unexpected()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results.json")
	older := matrix.Results{}
	older.Set("sdk", matrix.Direct, &matrix.Result{Passed: 3, Failed: []string{"a", "b"}})
	older.Set("cli", matrix.Direct, &matrix.Result{Passed: 5})
	if err := older.Write(file); err != nil {
		t.Fatal(err)
	}
	older, err := matrix.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	now := older.Clone()
	if changes := now.Changes(older); len(changes) > 0 {
		t.Errorf("got changes %q of the same results", changes)
	}
	now.Set("sdk", matrix.Direct, &matrix.Result{Passed: 3, Failed: []string{"b", "c"}})
	delete(now, "cli") // which was not run
	want := []string{"sdk directly: 3 of 5 -> 3 of 5, fails: c, fails no more: a"}
	if diff := cmp.Diff(want, now.Changes(older)); diff != "" {
		t.Error(diff)
	}
	if !older["sdk"][matrix.Direct].Same(&matrix.Result{Passed: 3, Failed: []string{"a", "b"}}) {
		t.Error("the older results were changed with their clone")
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	c := matrix.Find("sdk-0.1.16")
	r := matrix.Results{}
	r.Set(c.Name, matrix.Proxy, asKnown(c))
	r.Set("mcp", matrix.Direct, &matrix.Result{Passed: 21})
	table := r.Markdown()
	for _, want := range []string{
		"| PyPI `opensandbox` 0.1.16 | not run | 3 of " + total(asKnown(c)) + " ✗ |",
		"`run-argv`: this version of the client has no `argv`",
		"| 21 of 21 | not run | |\n",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("the table has no %q:\n%s", want, table)
		}
	}
	if got, want := strings.Count(table, "\n"), len(matrix.Clients)+2; got != want {
		t.Errorf("got %d lines, want %d", got, want)
	}
}

func total(r *matrix.Result) string { return strconv.Itoa(r.Passed + len(r.Failed)) }
