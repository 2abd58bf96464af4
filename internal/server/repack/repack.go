// Package repack writes the tar that comes out of a sandbox anew, for somebody
// to unpack on a machine of their own:
//
//	err := repack.Zip(w, tar)
//
// Whoever is in the sandbox may have written anything into it. No name and no
// link in what is written leads out of the folder in which it is unpacked, and
// nothing but plain files, directories and links is in it.
package repack

import (
	"archive/tar"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/glassboxhq/glassbox/sandbox"
)

// archive is what is written.
type archive interface {
	directory(h *tar.Header) error
	file(h *tar.Header, content io.Reader) error
	// link reports whether the archive takes links.
	link(h *tar.Header) (bool, error)
	finish(skipped int, names []string) error
}

// repacker reads a tar.
type repacker struct {
	from    *tar.Reader
	to      archive
	links   map[string]bool // below which nothing may lie
	skipped int
	names   []string // of the first that were left out
}

const (
	maxLinks = 100_000
	maxNames = 100
)

func repack(to archive, from io.Reader) error {
	r := &repacker{from: tar.NewReader(from), to: to, links: map[string]bool{}}
	for {
		h, err := r.from.Next()
		if errors.Is(err, io.EOF) {
			return to.finish(r.skipped, r.names)
		}
		if err == nil {
			err = r.entry(h)
		}
		if err != nil {
			return err
		}
	}
}

func (r *repacker) entry(h *tar.Header) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		r.told(h.PAXRecords)
		return nil
	}
	name, safe := r.place(h.Name)
	switch {
	case !safe || sparse(h):
		r.skip(h.Name)
		return nil
	case name == ".":
		return nil
	}
	plain := &tar.Header{
		Typeflag: h.Typeflag, Name: name, Size: h.Size, Mode: h.Mode & 0o777, ModTime: h.ModTime,
		Uid: h.Uid, Gid: h.Gid, Uname: h.Uname, Gname: h.Gname, Linkname: h.Linkname,
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return r.to.file(plain, r.from)
	case tar.TypeDir:
		plain.Name += "/"
		return r.to.directory(plain)
	case tar.TypeSymlink, tar.TypeLink:
		return r.link(plain)
	}
	r.skip(h.Name)
	return nil
}

// sparse reports whether a file may be far larger than what of it comes.
func sparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return h.Typeflag == tar.TypeGNUSparse
}

// place returns a name as it is seen from the folder, unless it leads out of
// it, or through a link.
func (r *repacker) place(name string) (string, bool) {
	if path.IsAbs(name) || climbs(name) || strings.ContainsRune(name, 0) {
		return "", false
	}
	name = path.Clean(name)
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if r.links[dir] {
			return "", false
		}
	}
	return name, name != ""
}

// climbs reports whether a part of a name is "..".
func climbs(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

func (r *repacker) link(h *tar.Header) error {
	safe := len(r.links) < maxLinks
	if h.Typeflag == tar.TypeLink {
		var to string
		to, inside := r.place(h.Linkname)
		h.Linkname, safe = to, inside && to != "."
	} else if safe = safe && stays(h.Name, h.Linkname); safe {
		r.links[h.Name] = true
	}
	if safe {
		var err error
		if safe, err = r.to.link(h); err != nil {
			return err
		}
	}
	if !safe {
		r.skip(h.Name)
	}
	return nil
}

// stays reports whether a symbolic link leads to somewhere in the folder: up
// by no more than its own depth, and only in the beginning, as what is behind
// another link may lie higher than it looks.
func stays(name, target string) bool {
	if path.IsAbs(target) || target == "" || strings.ContainsRune(target, 0) {
		return false
	}
	depth := strings.Count(name, "/")
	for strings.HasPrefix(target+"/", "../") {
		depth, target = depth-1, strings.TrimPrefix(target+"/", "../")
		target = strings.TrimSuffix(target, "/")
	}
	return depth >= 0 && !climbs(target)
}

func (r *repacker) skip(name string) {
	r.skipped++
	if len(r.names) < maxNames {
		r.names = append(r.names, strings.ReplaceAll(name, "\n", "?"))
	}
}

// told adds what the sandbox has left out.
func (r *repacker) told(records map[string]string) {
	n, err := strconv.Atoi(records[sandbox.TarSkipped])
	if err != nil || n < 1 || n > 1<<30 {
		return
	}
	r.skipped += n
	for name := range strings.SplitSeq(records[sandbox.TarSkippedNames], "\n") {
		if name != "" && len(r.names) < maxNames {
			r.names = append(r.names, name)
		}
	}
}
