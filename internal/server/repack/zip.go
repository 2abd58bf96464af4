package repack

import (
	"archive/tar"
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Zip writes a zip, for any machine: without links, and with names that
// Windows knows. What is left out is told in its comment.
func Zip(w io.Writer, from io.Reader) error {
	return repack(&zipped{zip.NewWriter(w)}, from)
}

type zipped struct{ w *zip.Writer }

func (z *zipped) directory(h *tar.Header) error {
	_, err := z.w.CreateHeader(zipHeader(h, fs.ModeDir))
	return err
}

func (z *zipped) file(h *tar.Header, content io.Reader) error {
	f, err := z.w.CreateHeader(zipHeader(h, 0))
	if err == nil {
		_, err = io.Copy(f, content)
	}
	return err
}

func zipHeader(h *tar.Header, kind fs.FileMode) *zip.FileHeader {
	z := &zip.FileHeader{Name: zipName(h.Name), Modified: h.ModTime}
	if kind == 0 {
		z.Method = zip.Deflate
	}
	z.SetMode(fs.FileMode(h.Mode)&fs.ModePerm | kind)
	return z
}

func (*zipped) link(*tar.Header) (bool, error) { return false, nil }

const maxComment = 32 << 10

func (z *zipped) finish(skipped int, names []string) error {
	if skipped > 0 {
		text := fmt.Sprintf("left out: %d\n%s", skipped, strings.ToValidUTF8(strings.Join(names, "\n"), "?"))
		if err := z.w.SetComment(strings.ToValidUTF8(text[:min(len(text), maxComment)], "")); err != nil {
			return err
		}
	}
	return z.w.Close()
}

// zipName changes the parts of a name that some machine does not know. Those
// get a mark made of what they were, so that no two become one.
func zipName(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if known := portable(part); known != part {
			sum := sha256.Sum256([]byte(part))
			ext := path.Ext(known)
			parts[i] = strings.TrimSuffix(known, ext) + "~" + hex.EncodeToString(sum[:4]) + ext
		}
	}
	return strings.Join(parts, "/")
}

// devices are names that are no files on Windows, whatever follows a dot.
var devices = map[string]bool{"con": true, "prn": true, "aux": true, "nul": true}

func portable(part string) string {
	known := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError || strings.ContainsRune(`\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, part)
	base, _, _ := strings.Cut(strings.ToLower(known), ".")
	isPort := len(base) == 4 && (strings.HasPrefix(base, "com") || strings.HasPrefix(base, "lpt")) && base[3] >= '0' && base[3] <= '9'
	if devices[base] || isPort {
		known = "_" + known
	}
	if trimmed := strings.TrimRight(known, " ."); trimmed != known {
		known = trimmed + "_"
	}
	return known
}
