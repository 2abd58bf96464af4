// Command readme writes the tables of measurements in README.md from what
// docs/bench.json and docs/bench-opensandbox.json hold.
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

const readmeFile = "README.md"

// tables are the files, by the mark of their table and what measures them.
var tables = []struct{ mark, file, by string }{
	{"bench", "docs/bench.json", "make bench"},
	{"bench-opensandbox", "docs/bench-opensandbox.json", "make bench-opensandbox"},
}

func main() {
	check := flag.Bool("check", false, "change nothing, and exit 1 if there is something to change")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "readme:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	for _, t := range tables {
		r, err := report.Read(t.file)
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s is not there: run %s", t.file, t.by)
		}
		if err != nil {
			return err
		}
		err = marked.Write(readmeFile, t.mark, r.Markdown(), check)
		if errors.Is(err, marked.ErrStale) {
			return fmt.Errorf("%w; it is made from %s: run go run ./internal/bench/readme", err, t.file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
