// Package web holds the console's page. It is plain so far: one document, one
// module script and one style sheet, for any browser.
package web

import (
	"embed"
	"io/fs"
)

//go:embed plain
var files embed.FS

// Page returns the files of the page.
func Page() fs.FS {
	page, err := fs.Sub(files, "plain")
	if err != nil {
		panic(err) // the name is right
	}
	return page
}
