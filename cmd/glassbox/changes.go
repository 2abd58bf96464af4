package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/glassboxhq/glassbox/history"
)

// shownChanges is how many paths a timeline names.
const shownChanges = 3

// showChanges tells in a line or two what a command did to files.
func (a *app) showChanges(c *history.Changes) {
	if c == nil || !c.Any() {
		return
	}
	var counts []string
	for _, kind := range []struct {
		n    int
		what string
	}{{c.CreatedCount, "created"}, {c.ChangedCount, "changed"}, {c.DeletedCount, "deleted"}} {
		if kind.n > 0 {
			counts = append(counts, strconv.Itoa(kind.n)+" "+kind.what)
		}
	}
	line := "files: " + strings.Join(counts, ", ")
	if c.Incomplete != "" {
		line += ", at least"
	}
	if len(c.With) > 0 {
		line += ", with " + strconv.Itoa(len(c.With)) + " other commands of that time"
	}
	a.fact("%s", line)
	shown := 0
	eachChange(c, func(sign, text string) bool {
		if shown++; shown > shownChanges {
			fmt.Fprintln(a.page, "      …")
			return false
		}
		fmt.Fprintf(a.page, "      %s %s\n", sign, short(plain(text), 160))
		return true
	})
}

// listChanges tells all that is kept of what a command did to files.
func (a *app) listChanges(c *history.Changes) {
	if c == nil {
		return
	}
	if c.Incomplete != "" {
		fmt.Fprintf(a.page, "    %-12s %s\n", "incomplete", plain(c.Incomplete))
	}
	for _, id := range c.With {
		fmt.Fprintf(a.page, "    %-12s %s\n", "with", plain(id))
	}
	if !c.Any() {
		return
	}
	fmt.Fprintln(a.page, "  files")
	listed := 0
	eachChange(c, func(sign, text string) bool {
		listed++
		fmt.Fprintf(a.page, "    %s %s\n", sign, plain(text))
		return a.page.failed() == nil
	})
	if more := c.CreatedCount + c.ChangedCount + c.DeletedCount - listed; more > 0 {
		fmt.Fprintf(a.page, "    … %d more, whose names are not kept\n", more)
	}
}

// eachChange goes through the changes, what is gone first.
func eachChange(c *history.Changes, each func(sign, text string) bool) {
	for _, kind := range []struct {
		sign string
		list []history.FileChange
	}{{"-", c.Deleted}, {"+", c.Created}, {"~", c.Changed}} {
		for _, f := range kind.list {
			if !each(kind.sign, f.Path+aboutChange(&f)) {
				return
			}
		}
	}
}

// aboutChange tells type and size.
func aboutChange(f *history.FileChange) string {
	var facts []string
	if f.Type != "" {
		facts = append(facts, f.Type)
	}
	switch {
	case f.Attributes:
		facts = append(facts, "attributes only")
	case f.PreviousSize != nil && f.Size != nil && *f.PreviousSize != *f.Size:
		facts = append(facts, count(*f.PreviousSize)+" → "+count(*f.Size)+" bytes")
	case f.Size != nil:
		facts = append(facts, count(*f.Size)+" bytes")
	case f.PreviousSize != nil:
		facts = append(facts, count(*f.PreviousSize)+" bytes")
	}
	if len(facts) == 0 {
		return ""
	}
	return " (" + strings.Join(facts, ", ") + ")"
}
