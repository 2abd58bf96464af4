// Command page writes the table of the public clients in docs/compatibility.md
// from the results of make test-clients.
//
//	go run ./internal/compat/page          writes it
//	go run ./internal/compat/page -check   exits 1 when it is not as it would be written
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/glassboxhq/glassbox/internal/compat/matrix"
	"github.com/glassboxhq/glassbox/internal/marked"
)

const (
	page    = "docs/compatibility.md"
	results = "internal/compat/results.json"
)

func main() {
	check := flag.Bool("check", false, "change nothing, and exit 1 if there is something to change")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	r, err := matrix.Read(results)
	if err != nil {
		return err
	}
	if lines := r.Unexpected(); len(lines) > 0 {
		return fmt.Errorf("%s has what internal/compat/matrix does not know: %s", results, strings.Join(lines, "; "))
	}
	err = marked.Write(page, "clients", r.Markdown(), check)
	if errors.Is(err, marked.ErrStale) {
		return fmt.Errorf("%w; it is made from %s: run go run ./internal/compat/page", err, results)
	}
	return err
}
