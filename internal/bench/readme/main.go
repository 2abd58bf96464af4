// Command readme writes the table of measurements in README.md from what
// docs/bench.json holds.
//
//	go run ./internal/bench/readme          writes it
//	go run ./internal/bench/readme -check   exits 1 when it is not as it would be written
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/glassboxhq/glassbox/internal/bench/report"
)

const (
	readmeFile = "README.md"
	reportFile = "docs/bench.json"
	begin      = "<!-- bench -->\n"
	end        = "<!-- /bench -->\n"
)

func main() {
	check := flag.Bool("check", false, "change nothing, and exit 1 if there is something to change")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "readme:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	r, err := report.Read(reportFile)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is not there: run make bench", reportFile)
	}
	if err != nil {
		return err
	}
	is, err := os.ReadFile(readmeFile)
	if err != nil {
		return err
	}
	want, err := replace(string(is), r.Markdown())
	switch {
	case err != nil:
		return err
	case string(is) == want:
		return nil
	case check:
		return fmt.Errorf("the table between %s and %s in %s is not made from %s: run go run ./internal/bench/readme",
			strings.TrimSpace(begin), strings.TrimSpace(end), readmeFile, reportFile)
	}
	return os.WriteFile(readmeFile, []byte(want), 0o644)
}

// replace puts table between the markers of a text.
func replace(text, table string) (string, error) {
	head, rest, found := strings.Cut(text, begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("%s does not have the lines %s and %s", readmeFile, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return head + begin + table + end + tail, nil
}
