package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
)

// page is the files of the page, by name. A path is looked up among them, and
// never goes to a file system.
type page struct {
	files map[string]*pageFile
	views []string // paths of the page's own, all answered by index.html
}

type pageFile struct {
	content   []byte
	mediaType string
	tag       string
	hashed    bool // its name changes with its content
}

var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".woff2": "font/woff2", ".ttf": "font/ttf", ".json": "application/json", ".txt": "text/plain; charset=utf-8",
}

const index = "index.html"

// views are the paths at which the page is opened; it has a route of each.
func views() []string {
	list := []string{
		"/", "/sign-in", "/sandboxes", "/sandboxes/{sandbox}", "/sandboxes/{connection}/{sandbox}", "/history", "/connections",
		"/settings", "/settings/{part}", "/o/{connection}/{sandbox}/{operation}",
	}
	for _, tab := range tabs {
		list = append(list, "/sandboxes/{connection}/{sandbox}/"+tab)
	}
	return list
}

func newPage(files fs.FS) (*page, error) {
	p := &page{files: map[string]*pageFile{}, views: views()}
	if files == nil {
		return p, nil
	}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		mediaType, known := mediaTypes[path.Ext(name)]
		if !known {
			return fmt.Errorf("%s of the page is of no kind that is known", name)
		}
		content, err := fs.ReadFile(files, name)
		sum := sha256.Sum256(content)
		p.files[name] = &pageFile{content, mediaType, `"` + hex.EncodeToString(sum[:8]) + `"`, strings.HasPrefix(name, "assets/")}
		return err
	})
	if err == nil && p.files[index] == nil {
		err = errors.New("the page has no " + index)
	}
	return p, err
}

func (p *page) routes(router chi.Router) {
	for name, file := range p.files {
		if name != index {
			router.Get("/"+name, file.serve)
			router.Head("/"+name, file.serve)
		}
	}
	if file := p.files[index]; file != nil {
		for _, view := range p.views {
			router.Get(view, file.serve)
			router.Head(view, file.serve)
		}
	}
}

func (f *pageFile) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Cache-Control", "no-cache") // asked again, and answered by the tag
	if f.hashed {
		h.Set("Cache-Control", "max-age=31536000, immutable") // another content has another name
	}
	h.Set("Content-Type", f.mediaType)
	h.Set("ETag", f.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
}
