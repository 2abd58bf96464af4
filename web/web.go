// Package web holds the console's page: the one that scripts/build.sh builds
// from web/src, or, where nothing was built, a plain one for any browser.
package web

import (
	"embed"
	"io/fs"
)

// What stands in pages is embedded, so nothing needs to be built to compile:
// pages/built is there once the page was built.
//
//go:embed all:pages
var files embed.FS

// Page returns the files of the page.
func Page() fs.FS {
	for _, name := range []string{"pages/built", "pages/plain"} {
		if _, err := fs.Stat(files, name+"/index.html"); err != nil {
			continue
		}
		page, err := fs.Sub(files, name)
		if err != nil {
			panic(err) // the name is right
		}
		return page
	}
	panic("the plain page is not embedded")
}
