package native

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/glassboxhq/glassbox/sandbox"
)

// maxAlternatives bounds a pattern. Braces multiply: {a,b}{c,d} is four.
const maxAlternatives = 256

// pattern is what a path below a root is matched against, part by part, so
// that a walk knows which directories it need not enter.
type pattern struct {
	lines  [][]string // alternatives, in their parts
	hidden bool       // names with a dot are like any others
	dirs   bool       // only directories: it ends in /
}

// state is a place in one of the alternatives.
type state struct{ line, part int }

func newPattern(field, text string, hidden bool) (*pattern, error) {
	if err := sandbox.CheckPattern(field, text); err != nil {
		return nil, err
	}
	if !doublestar.ValidatePattern(text) {
		return nil, sandbox.Invalid(field, "is not a pattern: a [, { or \\ is not closed")
	}
	p := &pattern{hidden: hidden}
	lines, ok := expand(text)
	if !ok {
		return nil, sandbox.Invalid(field, fmt.Sprintf("has more than %d alternatives in its braces", maxAlternatives))
	}
	p.dirs = strings.HasSuffix(text, "/")
	for _, line := range lines {
		parts, err := split(field, line)
		if err != nil {
			return nil, err
		}
		p.lines = append(p.lines, parts)
	}
	return p, nil
}

// split cuts an alternative into parts; ** twice in a row is once.
func split(field, line string) (parts []string, err error) {
	for part := range strings.SplitSeq(line, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			return nil, sandbox.Invalid(field, "must not contain ..; give the directory as path")
		case part == "**" && len(parts) > 0 && parts[len(parts)-1] == "**":
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return nil, sandbox.Invalid(field, "matches nothing below path")
	}
	return parts, nil
}

// expand writes the alternatives of braces out.
func expand(text string) (lines []string, ok bool) {
	todo := []string{text}
	for len(todo) > 0 {
		line := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		open, cuts := braces(line)
		if open < 0 {
			lines = append(lines, line)
		}
		for i := len(cuts) - 2; i >= 0; i-- {
			todo = append(todo, line[:open]+line[cuts[i]+1:cuts[i+1]]+line[cuts[len(cuts)-1]+1:])
		}
		if len(lines)+len(todo) > maxAlternatives {
			return nil, false
		}
	}
	return lines, true
}

// braces finds the first brace of a pattern, and where its alternatives are
// cut: at the brace, at each comma, and at the brace that closes it.
func braces(line string) (open int, cuts []int) {
	open = -1
	depth, class := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '{':
			if depth++; depth == 1 {
				open, cuts = i, []int{i}
			}
		case c == ',' && depth == 1:
			cuts = append(cuts, i)
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				return open, append(cuts, i)
			}
		}
	}
	return -1, nil
}

// start is where every alternative begins.
func (p *pattern) start() (states []state) {
	for line := range p.lines {
		states = p.add(states, state{line, 0})
	}
	return states
}

// add adds a state, and what it is as well: ** stands for no directory too,
// but at the end for one name at least.
func (p *pattern) add(states []state, s state) []state {
	if slices.Contains(states, s) {
		return states
	}
	states = append(states, s)
	parts := p.lines[s.line]
	if s.part < len(parts)-1 && parts[s.part] == "**" {
		states = p.add(states, state{s.line, s.part + 1})
	}
	return states
}

// step goes on by one name. It tells the states after it, and whether the path
// up to there matches.
func (p *pattern) step(states []state, name string) (next []state, matched bool) {
	for _, s := range states {
		parts := p.lines[s.line]
		if s.part == len(parts) {
			continue
		}
		part, last := parts[s.part], s.part == len(parts)-1
		switch {
		case part == "**" && (p.hidden || !hidden(name)):
			next = p.add(next, s)
		case part != "**" && p.matches(part, name):
			if !last {
				next = p.add(next, state{s.line, s.part + 1})
			}
		default:
			continue
		}
		matched = matched || last
	}
	return next, matched
}

// matches compares one part. A dot at the beginning is only matched by a dot.
func (p *pattern) matches(part, name string) bool {
	if hidden(name) && !p.hidden && !strings.HasPrefix(strings.TrimPrefix(part, `\`), ".") {
		return false
	}
	return doublestar.MatchUnvalidated(part, name)
}

// track keeps the states of a walk, one set for each directory that is open.
type track struct {
	p     *pattern
	stack [][]state // by depth
}

func newTrack(p *pattern) *track { return &track{p: p, stack: [][]state{p.start()}} }

// at tells of a node whether it matches, and whether anything below it may.
func (t *track) at(rel, name string) (matched, below bool) {
	depth := strings.Count(rel, "/")
	next, matched := t.p.step(t.stack[depth], name)
	t.stack = append(t.stack[:depth+1], next)
	return matched, len(next) > 0
}
