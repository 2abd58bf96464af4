package server

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/swaggest/swgui/v5/static"
)

//go:embed viewer
var viewerFiles embed.FS

// viewerPolicy is that of a page. No style stands in the viewer.
var viewerPolicy = strings.Replace(pagePolicy, " 'unsafe-inline'", "", 1)

// viewer serves a page that shows the OpenAPI document, all of it from this
// program.
func (s *Server) viewer() error {
	own, err := fs.Sub(viewerFiles, "viewer")
	if err != nil {
		return err
	}
	var faults []error
	for at, from := range map[string]struct {
		files fs.FS
		name  string
	}{
		"/docs":                      {own, "index.html"},
		"/docs/viewer.js":            {own, "viewer.js"},
		"/docs/swagger-ui-bundle.js": {static.FS, "swagger-ui-bundle.js.gz"},
		"/docs/swagger-ui.css":       {static.FS, "swagger-ui.css.gz"},
	} {
		content, err := fs.ReadFile(from.files, from.name)
		if err != nil {
			faults = append(faults, fmt.Errorf("viewer of the API: %w", err))
			continue
		}
		name, packed := strings.CutSuffix(from.name, ".gz")
		sum := sha256.Sum256(content)
		file := &viewerFile{content, mediaTypes[path.Ext(name)], packed, hex.EncodeToString(sum[:8])}
		s.guarded(Prefix+at, "docs", file.serve)
	}
	return errors.Join(faults...)
}

// viewerFile is a file of the viewer.
type viewerFile struct {
	content   []byte
	mediaType string
	packed    bool // by gzip
	tag       string
}

func (f *viewerFile) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", viewerPolicy)
	h.Set("Cache-Control", "no-cache") // asked again, and answered by the tag
	h.Set("Content-Type", f.mediaType)
	content, tag := f.content, f.tag
	if f.packed {
		h.Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			tag += "-gzip"
		} else {
			content = unpacked(content)
		}
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// unpacked is for the few who do not take it packed.
func unpacked(content []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err == nil {
		content, err = io.ReadAll(r)
	}
	if err != nil {
		panic(err) // it is a part of this program
	}
	return content
}
