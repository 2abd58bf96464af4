package execd

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The package's second program unpacks an upload of many files: it is given an
// archive and a manifest, and told to extract, verify, commit and clean up. It
// is not run either. Nothing is written before commit, which is one upload, as
// that of our own wire, and one operation.
const (
	uploadRoot    = "/.agent-upload"
	uploadProgram = uploadRoot + "/bin/upload-helper-v1.pyz"
	uploadVersion = uploadRoot + "/VERSION"
)

var (
	uploadArchive = regexp.MustCompile(`\A/\.agent-upload/tmp/archive-[0-9a-f-]{36}\.tar\.gz\z`)
	uploadFile    = regexp.MustCompile(`\A/\.agent-upload/tmp/(helper-[0-9a-f-]{36}\.pyz|manifest-[0-9a-f-]{36}\.json)\z`)
	uploadStaging = regexp.MustCompile(`\A/\.agent-upload/[0-9a-f-]{36}\z`)
)

// uploadVerbs are the program's commands.
var uploadVerbs = map[string]*helperVerb{
	"extract": {[]string{"--archive", "--staging", "--manifest-file"}, uploadExtract},
	"verify":  {[]string{"--staging", "--manifest-file"}, uploadVerify},
	"commit":  {[]string{"--staging", "--target", "--manifest-file", "--conflict", "--atomic!"}, uploadCommit},
	"cleanup": {[]string{"--staging"}, uploadCleanup},
}

// manifest is what an archive must hold: regular files and nothing else.
type manifest struct {
	Hash    string          `json:"manifest_hash"`
	Entries []manifestEntry `json:"entries"`
}

type manifestEntry struct {
	Name string `json:"relative_path"`
	Size int64  `json:"size"`
	Sum  string `json:"sha256"`
}

func (h *helper) manifest(name string) (*manifest, error) {
	var m manifest
	if err := h.payload(name, &m); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, e := range m.Entries {
		if !fs.ValidPath(e.Name) || e.Name == "." || e.Size < 0 || seen[e.Name] {
			return nil, fmt.Errorf("%q is no path of a manifest", e.Name)
		}
		seen[e.Name] = true
	}
	return &m, nil
}

func (m *manifest) bytes() (total int64) {
	for _, e := range m.Entries {
		total += e.Size
	}
	return total
}

func (m *manifest) answer() map[string]any {
	return map[string]any{"ok": true, "file_count": len(m.Entries), "total_bytes": m.bytes(), "manifest_hash": m.Hash}
}

// staged is an archive that was looked at.
type staged struct {
	*manifest
	archive *helperUpload
}

// uploadExtract looks whether the archive holds what the manifest says. It
// stays packed until commit.
func uploadExtract(_ context.Context, h *helper, flags map[string]string) (any, error) {
	m, err := h.manifest(flags["--manifest-file"])
	if err != nil {
		return nil, err
	}
	if !uploadStaging.MatchString(flags["--staging"]) {
		return nil, errors.New("the staging directory must be " + uploadRoot + "/ and the upload's id")
	}
	packed, err := h.find(flags["--archive"])
	if err != nil {
		return nil, err
	}
	if err := m.check(packed.content()); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.staged) >= maxHelperFiles { // their makers have gone
		clear(h.staged)
	}
	h.staged[flags["--staging"]] = &staged{m, packed}
	return m.answer(), nil
}

func (h *helper) findStaged(name string) (*staged, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.staged[name]; s != nil {
		return s, nil
	}
	return nil, errors.New("nothing is staged in " + name)
}

// check reads an archive through.
func (m *manifest) check(packed io.Reader) error {
	left := map[string]manifestEntry{}
	for _, e := range m.Entries {
		left[e.Name] = e
	}
	err := eachFile(packed, func(head *tar.Header, content io.Reader) error {
		e, ok := left[head.Name]
		switch {
		case !ok:
			return fmt.Errorf("archive entry is absent from manifest: %s", head.Name)
		case head.Size != e.Size:
			return fmt.Errorf("archive size mismatch: %s", head.Name)
		}
		delete(left, head.Name)
		sum, err := sumOf(content)
		if err == nil && sum != e.Sum {
			err = fmt.Errorf("archive checksum mismatch: %s", head.Name)
		}
		return err
	})
	for name := range left {
		return errors.Join(err, fmt.Errorf("manifest entry is not in the archive: %s", name))
	}
	return err
}

// eachFile reads the files of an archive in their order.
func eachFile(packed io.Reader, do func(head *tar.Header, content io.Reader) error) error {
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	for r := tar.NewReader(plain); ; {
		head, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read archive: %w", err)
		case head.Typeflag != tar.TypeReg:
			return fmt.Errorf("archive contains an unsupported entry type: %s", head.Name)
		}
		if err := do(head, r); err != nil {
			return err
		}
	}
}

func sumOf(content io.Reader) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, content); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// uploadVerify has nothing left to look at: extract has read all of it.
func uploadVerify(_ context.Context, h *helper, flags map[string]string) (any, error) {
	s, err := h.findStaged(flags["--staging"])
	if err != nil {
		return nil, err
	}
	return s.answer(), nil
}

func uploadCleanup(_ context.Context, h *helper, flags map[string]string) (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.staged, flags["--staging"])
	return map[string]any{"ok": true, "removed": true}, nil
}

// uploadCommit unpacks what was staged. All conflicts are looked for before
// anything is written.
func uploadCommit(ctx context.Context, h *helper, flags map[string]string) (any, error) {
	s, err := h.findStaged(flags["--staging"])
	if err != nil {
		return nil, err
	}
	skipped, err := s.conflicts(flags["--target"], flags["--conflict"])
	if err != nil {
		return nil, err
	}
	done, err := h.unpack(ctx, flags["--target"], s, skipped)
	if err != nil {
		return nil, err
	}
	return map[string]any{"ok": true, "committed_files": done.Files, "skipped_files": len(skipped), "atomic": false}, nil
}

// unpack is the upload. Its operation is the one that was announced.
func (h *helper) unpack(ctx context.Context, target string, s *staged, skipped map[string]bool) (*sandbox.Uploaded, error) {
	to, ok := h.session.(sandbox.Archiver)
	if !ok {
		return nil, errors.New("this sandbox takes no archives")
	}
	r, w := io.Pipe()
	var packing sync.WaitGroup
	packing.Go(func() { w.CloseWithError(repack(w, s.archive.content(), skipped)) })
	done, err := to.Upload(ctx, target, r, &sandbox.UploadOptions{
		ID: h.announced(history.FileUpload, target), MaxFiles: max(len(s.Entries), 1), MaxBytes: max(s.bytes(), 1),
	})
	r.CloseWithError(errors.New("the upload has ended"))
	packing.Wait()
	return done, err
}

// repack writes the files of an archive but those that are skipped.
func repack(w io.Writer, packed io.Reader, skipped map[string]bool) error {
	out := tar.NewWriter(w)
	err := eachFile(packed, func(head *tar.Header, content io.Reader) error {
		if skipped[head.Name] {
			return nil
		}
		if err := out.WriteHeader(head); err != nil {
			return err
		}
		_, err := io.Copy(out, content)
		return err
	})
	if err != nil {
		return err
	}
	return out.Close()
}

// conflicts tells which files stay as they are, or what is in the way.
func (m *manifest) conflicts(target, policy string) (skipped map[string]bool, err error) {
	switch {
	case !path.IsAbs(target):
		return nil, errors.New("the target must be an absolute path")
	case !slices.Contains([]string{"error", "overwrite", "skip", "if_changed"}, policy):
		return nil, errors.New("unsupported conflict policy: " + policy)
	}
	skipped = map[string]bool{}
	dirs := map[string]bool{".": true}
	for _, e := range m.Entries {
		if err := clearWay(target, path.Dir(e.Name), dirs); err != nil {
			return nil, err
		}
		skip, err := e.conflict(path.Join(target, e.Name), policy)
		if err != nil {
			return nil, err
		}
		if skip {
			skipped[e.Name] = true
		}
	}
	return skipped, nil
}

// clearWay looks whether what is there of a way below the target are
// directories. Those that were looked at are remembered.
func clearWay(target, dir string, seen map[string]bool) error {
	if seen[dir] {
		return nil
	}
	if err := clearWay(target, path.Dir(dir), seen); err != nil {
		return err
	}
	seen[dir] = true
	if info, err := os.Lstat(path.Join(target, dir)); err == nil && !info.IsDir() {
		return fmt.Errorf("unsafe upload conflict: %s is not a directory", dir)
	}
	return nil
}

func (e *manifestEntry) conflict(name, policy string) (skip bool, err error) {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("unsafe upload conflict: %s", e.Name)
	}
	switch policy {
	case "error":
		return false, fmt.Errorf("upload target already exists: %s", e.Name)
	case "if_changed":
		return info.Size() == e.Size && e.is(name), nil
	}
	return policy == "skip", nil
}

// is reports whether a file holds what the entry does. It may have become
// anything since it was looked at.
func (e *manifestEntry) is(name string) bool {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false
	}
	sum, err := sumOf(io.LimitReader(f, e.Size+1))
	return err == nil && sum == e.Sum
}

// runUpload does what a call of the program asks for, and says it as that does.
func (h *helper) runUpload(ctx context.Context, verb *helperVerb, flags map[string]string) (string, error) {
	data, err := verb.do(ctx, h, flags)
	if err != nil {
		return "", errors.New(string(history.Encode(map[string]any{"ok": false, "error": "UploadHelperError", "message": err.Error()})))
	}
	return string(history.Encode(map[string]any{"ok": true, "data": data})), nil
}
