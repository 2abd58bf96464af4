package native

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Limits of an upload where none are given.
const (
	defaultUploadFiles = 100_000
	defaultUploadBytes = 16 << 30
)

// Upload implements sandbox.Archiver. Names lead from directory to directory
// below the one that was opened, and never through a link, so that neither the
// archive nor an agent can lead a file elsewhere. Of an entry only its name,
// its permission bits, its time and its content count: setuid, setgid and
// sticky bits, owners and extended attributes are left out.
func (s *Session) Upload(ctx context.Context, name string, content io.Reader, opts *sandbox.UploadOptions) (*sandbox.Uploaded, error) {
	const op = "upload"
	u, err := s.newUnpacker(ctx, opts)
	if err != nil {
		return nil, err
	}
	full, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	u.path = full
	if u.root, err = s.openDir(op, full, &making{}); err != nil {
		return nil, err
	}
	defer u.close()
	if err := u.enter(u.root, ""); err != nil {
		return nil, fault(op, err)
	}
	from := &counter{r: reading(ctx, content)}
	err = u.unpack(from)
	if err == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(from, maxPadding)) // lets the sender end
	}
	return u.done, fault(op, errors.Join(err, u.modes()))
}

const (
	tarBlock   = 512
	maxPadding = 1 << 20
)

// counter counts what is read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// unpacker is an upload under way.
type unpacker struct {
	s         *Session
	ctx       context.Context //nolint:containedctx // of the one act that unpacks
	opts      sandbox.UploadOptions
	root      *os.File
	path      string
	protected []string
	done      *sandbox.Uploaded
	entries   int
	dir       *os.File // of the last entry
	dirName   string   // below the root
	dirReal   string   // as the kernel says it
	made      []madeDir
	buf       []byte
}

// madeDir is a directory whose mode comes at the end: until then it must be
// possible to write in it.
type madeDir struct {
	name string
	mode fs.FileMode
}

func (s *Session) newUnpacker(ctx context.Context, opts *sandbox.UploadOptions) (*unpacker, error) {
	u := &unpacker{s: s, ctx: ctx, done: &sandbox.Uploaded{}, buf: make([]byte, packBuffer)}
	if opts != nil {
		u.opts = *opts
	}
	switch {
	case u.opts.MaxFiles < 0:
		return nil, sandbox.Invalid("max_files", "must not be negative")
	case u.opts.MaxBytes < 0:
		return nil, sandbox.Invalid("max_bytes", "must not be negative")
	}
	if u.opts.MaxFiles == 0 {
		u.opts.MaxFiles = defaultUploadFiles
	}
	if u.opts.MaxBytes == 0 {
		u.opts.MaxBytes = defaultUploadBytes
	}
	for _, dir := range s.opts.Protected {
		u.protected = append(u.protected, realPath(dir))
	}
	return u, nil
}

func (u *unpacker) close() {
	if u.dir != nil && u.dir != u.root {
		u.dir.Close()
	}
	u.root.Close()
}

// bad is an archive that is refused.
func bad(name, why string) error {
	e := &sandbox.Error{Code: sandbox.CodeArchive, Field: "tar", Message: why}
	if name != "" {
		e.Message = strconv.QuoteToGraphic(name) + " " + why
	}
	return e
}

func (u *unpacker) unpack(from *counter) error {
	r := tar.NewReader(from)
	for {
		before := from.n
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF) && from.n-before < tarBlock:
			// A tar ends with blocks of zeros, and one that was cut does not.
			return bad("", "ends before its end mark: it was cut")
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, tar.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, tar.ErrFieldTooLong):
			return bad("", "cannot be read as a tar: "+err.Error())
		case err != nil:
			return err
		case h.Typeflag == tar.TypeXGlobalHeader:
			continue
		}
		if u.entries++; u.entries > u.opts.MaxFiles {
			return &sandbox.Error{Code: sandbox.CodeTooLarge, Field: "tar", Message: fmt.Sprintf("has more than %d entries, the limit of this upload", u.opts.MaxFiles)}
		}
		if err := u.entry(h, r); err != nil {
			return err
		}
	}
}

func (u *unpacker) entry(h *tar.Header, r io.Reader) error {
	name, err := entryName(h.Name)
	if err != nil || name == "." && h.Typeflag == tar.TypeDir {
		return err // the directory itself is there
	}
	if name == "." {
		return bad(h.Name, "names no file")
	}
	if err := u.find(path.Dir(name)); err != nil {
		return err
	}
	last := path.Base(name)
	if err := u.mayWrite(last, name); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		err = u.regular(h, last, r)
	case tar.TypeDir:
		err = u.directory(h, last, name)
	case tar.TypeSymlink:
		err = u.symlink(h, last)
	case tar.TypeLink:
		err = u.hardLink(h, name)
	default:
		return bad(h.Name, "is a device, a FIFO or of another kind that is not unpacked")
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		if perr, ok := errors.AsType[*fs.PathError](err); !ok || perr.Path == "" {
			return &fs.PathError{Op: "unpack", Path: path.Join(u.path, name), Err: errno}
		}
	}
	return err
}

// entryName checks a name of an archive, and cleans it.
func entryName(name string) (string, error) {
	switch {
	case name == "":
		return "", bad("", "has an entry without a name")
	case strings.ContainsRune(name, 0):
		return "", bad(name, "has a NUL byte in its name")
	case strings.HasPrefix(name, "/"):
		return "", bad(name, "is an absolute path; names must lie below the directory")
	case len(name) >= unix.PathMax:
		return "", bad(name[:100]+"…", "is a name that is too long")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", bad(name, "climbs out with ..")
		}
	}
	return path.Clean(name), nil
}

// find opens the directory of an entry, and makes what is missing of it.
func (u *unpacker) find(name string) error {
	if name == "." {
		name = ""
	}
	if u.dir != nil && name == u.dirName {
		return nil
	}
	at := u.root
	rel := ""
	for part := range strings.SplitSeq(name, "/") {
		if name == "" {
			break
		}
		rel = path.Join(rel, part)
		next, err := u.down(at, part, rel)
		if at != u.root {
			at.Close()
		}
		if err != nil {
			return err
		}
		at = next
	}
	return u.enter(at, name)
}

// down opens a directory in an open one.
func (u *unpacker) down(at *os.File, part, rel string) (*os.File, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW
	next, err := openAt(int(at.Fd()), part, flags)
	if errors.Is(err, unix.ENOENT) {
		if err := u.guard(at, part, rel); err != nil {
			return nil, err
		}
		if err := u.s.opts.User.mkdirAt(int(at.Fd()), part, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, &fs.PathError{Op: "mkdir", Path: path.Join(u.path, rel), Err: err}
		}
		next, err = openAt(int(at.Fd()), part, flags)
	}
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		var stat unix.Stat_t
		if unix.Fstatat(int(at.Fd()), part, &stat, unix.AT_SYMLINK_NOFOLLOW) == nil && stat.Mode&unix.S_IFMT == unix.S_IFLNK {
			return nil, notAllowed("upload", path.Join(u.path, rel), "is a symbolic link, through which nothing is unpacked")
		}
		return nil, &fs.PathError{Op: "open", Path: path.Join(u.path, rel), Err: unix.ENOTDIR}
	case err != nil:
		return nil, renamed(err, path.Join(u.path, rel))
	}
	return next, nil
}

// enter makes an open directory the one that is written in.
func (u *unpacker) enter(dir *os.File, name string) error {
	if u.dir != nil && u.dir != u.root {
		u.dir.Close()
	}
	u.dir, u.dirName = dir, name
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(dir.Fd())))
	if err != nil {
		return err
	}
	u.dirReal = real
	if kernels(dir) {
		return notAllowed("upload", path.Join(u.path, name), "belongs to the kernel")
	}
	return nil
}

// mayWrite refuses what the recorder keeps.
func (u *unpacker) mayWrite(last, name string) error {
	for _, dir := range u.protected {
		if below(dir, path.Join(u.dirReal, last)) {
			return notAllowed("upload", path.Join(u.path, name), "is kept by the recorder, which alone writes there")
		}
	}
	return nil
}

// guard is mayWrite for a directory on the way.
func (u *unpacker) guard(at *os.File, part, rel string) error {
	p := &place{dir: at, name: part, path: path.Join(u.path, rel)}
	return u.s.guard("upload", p)
}
