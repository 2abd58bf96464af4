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

	"github.com/glassboxhq/glassbox/internal/bench/report"
	"github.com/glassboxhq/glassbox/internal/marked"
)

const (
	readmeFile = "README.md"
	reportFile = "docs/bench.json"
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
	err = marked.Write(readmeFile, "bench", r.Markdown(), check)
	if errors.Is(err, marked.ErrStale) {
		return fmt.Errorf("%w; it is made from %s: run go run ./internal/bench/readme", err, reportFile)
	}
	return err
}
