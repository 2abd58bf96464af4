package repack

import (
	"archive/tar"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Tar writes a tar. What is left out is told in its last header, as
// [sandbox.TarSkipped] says.
func Tar(w io.Writer, from io.Reader) error {
	return repack(&tarball{tar.NewWriter(w)}, from)
}

type tarball struct{ w *tar.Writer }

func (t *tarball) directory(h *tar.Header) error { return t.w.WriteHeader(h) }

func (t *tarball) file(h *tar.Header, content io.Reader) error {
	if err := t.w.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(t.w, content)
	return err
}

func (t *tarball) link(h *tar.Header) (bool, error) {
	h.Size = 0
	return true, t.w.WriteHeader(h)
}

func (t *tarball) finish(skipped int, names []string) error {
	var err error
	if skipped > 0 {
		err = t.w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{
			sandbox.TarSkipped: strconv.Itoa(skipped), sandbox.TarSkippedNames: strings.Join(names, "\n"),
		}})
	}
	return errors.Join(err, t.w.Close())
}
