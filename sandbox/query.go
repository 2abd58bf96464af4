package sandbox

import (
	"strings"
	"unicode/utf8"
)

// Bounds of what an edit or a search may ask for.
const (
	DefaultGlobLimit = 10_000
	DefaultGrepLimit = 1000
	MaxFound         = 100_000
	MaxContextLines  = 100
	maxGlobPattern   = 4096
	maxGrepPattern   = 64 << 10
)

// Validate checks what can be checked without the file.
func (e *Edit) Validate() error {
	switch {
	case e.Old == "":
		return Invalid("old", "must not be empty; write makes a new file, and append adds to its end")
	case e.Old == e.New:
		return Invalid("new", "is the same as old, so nothing would change")
	case !utf8.ValidString(e.Old):
		return Invalid("old", "must be UTF-8")
	case !utf8.ValidString(e.New):
		return Invalid("new", "must be UTF-8")
	case e.MaxBytes < 0:
		return Invalid("max_bytes", "must not be negative")
	case e.IfHash == Absent:
		return Invalid("if_hash", "must be the hash of a file: one that is absent cannot be edited")
	}
	return nil
}

// Validate checks what can be checked without the files.
func (q *GlobQuery) Validate() error {
	if err := checkLimit(q.Limit); err != nil {
		return err
	}
	return CheckPattern("pattern", q.Pattern)
}

// Validate checks what can be checked without the files.
func (q *GrepQuery) Validate() error {
	switch {
	case q.Pattern == "":
		return Invalid("pattern", "must not be empty")
	case len(q.Pattern) > maxGrepPattern:
		return Invalid("pattern", "must not be longer than 64 KiB")
	case !utf8.ValidString(q.Pattern):
		return Invalid("pattern", "must be UTF-8")
	case !q.Regexp && strings.ContainsAny(q.Pattern, "\n\x00"):
		return Invalid("pattern", "must not contain a line end or a NUL byte: a match lies in one line of a text")
	case q.Before < 0 || q.Before > MaxContextLines:
		return Invalid("before", "must be from 0 to 100")
	case q.After < 0 || q.After > MaxContextLines:
		return Invalid("after", "must be from 0 to 100")
	case q.FileLimit < 0:
		return Invalid("file_limit", "must not be negative")
	}
	if q.Glob != "" {
		if err := CheckPattern("glob", q.Glob); err != nil {
			return err
		}
	}
	return checkLimit(q.Limit)
}

// CheckPattern refuses what no pattern of names may be. Whether its brackets
// are closed is for the session to say.
func CheckPattern(field, text string) error {
	switch {
	case text == "":
		return Invalid(field, "must not be empty")
	case len(text) > maxGlobPattern:
		return Invalid(field, "must not be longer than 4096 bytes")
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return Invalid(field, "must be UTF-8 without NUL bytes; ? and * match other bytes")
	case strings.HasPrefix(text, "/"):
		return Invalid(field, "is matched below path, so it must not begin with /; give the directory as path")
	}
	return nil
}

func checkLimit(n int) error {
	if n < 0 || n > MaxFound {
		return Invalid("limit", "must be from 1 to 100000, or 0 for the default")
	}
	return nil
}
