// Package marked writes what a program makes between two marks of a page that
// people write: the lines <!-- NAME --> and <!-- /NAME -->.
package marked

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrStale says that a page does not have what would be written.
var ErrStale = errors.New("the page is not as it would be written")

// Write puts text between the marks in a file. With check it changes nothing,
// and returns [ErrStale] where it would.
func Write(file, name, text string, check bool) error {
	is, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	want, err := replace(string(is), name, text)
	switch {
	case err != nil:
		return fmt.Errorf("%s %w", file, err)
	case string(is) == want:
		return nil
	case check:
		return fmt.Errorf("between <!-- %s --> and <!-- /%s --> of %s: %w", name, name, file, ErrStale)
	}
	return os.WriteFile(file, []byte(want), 0o644)
}

func replace(page, name, text string) (string, error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
	head, rest, found := strings.Cut(page, begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("does not have the lines %s and %s", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return head + begin + text + end + tail, nil
}
