// Package userland lays out the root filesystem of a sandbox that works with
// this machine's programs and sees nothing else of it: /usr is bound, /etc is
// made, everything that may hold a secret stays away.
package userland

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bind is a folder of the host that appears, read-only, in the root.
type Bind struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// Options say what the root is for.
type Options struct {
	Hostname string
	// Workdir is a folder that is there from the start.
	Workdir string
	// Files and Dirs are mount points, made empty: a missing one would be
	// made by the runtime in what lies below, on the host.
	Files, Dirs []string
}

// folders are made empty, with their modes.
var folders = map[string]fs.FileMode{
	"dev": 0o755, "etc": 0o755, "home": 0o755, "media": 0o755, "mnt": 0o755, "opt": 0o755,
	"proc": 0o555, "root": 0o700, "run": 0o755, "run/lock": 0o1777, "srv": 0o755, "sys": 0o555,
	// gVisor would put a tmpfs over an empty /tmp, and files there would take
	// memory instead of disk.
	"tmp": 0o1777, "tmp/.X11-unix": 0o1777, "usr": 0o755, "var": 0o755, "var/cache": 0o755, "var/lib": 0o755, "var/lib/misc": 0o755,
	"var/log": 0o755, "var/spool": 0o755, "var/tmp": 0o1777,
}

// local is what takes the place of /usr/local, which belongs to the host.
var local = []string{"bin", "etc", "games", "include", "lib", "sbin", "share", "src"}

// merged are the names that are links into /usr on most systems, and folders
// of their own on others.
var merged = []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// Build lays out the root in dir/rootfs, and returns what has to be bound into
// it. It opens nothing that only root may read.
func Build(dir string, opts *Options) ([]Bind, error) {
	l := &layout{root: filepath.Join(dir, "rootfs"), mask: filepath.Join(dir, "local")}
	for _, step := range []func() error{
		l.folders,
		func() error { return l.usr(opts.Workdir) },
		l.merged,
		func() error { return l.points(opts) },
		func() error { return l.etc(opts.Hostname) },
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("build root: %w", err)
		}
	}
	return l.binds, nil
}

type layout struct {
	root, mask string
	binds      []Bind
}

func (l *layout) path(name string) string { return filepath.Join(l.root, name) }

func (l *layout) folders() error {
	for name, mode := range folders {
		if err := mkdir(l.path(name), mode); err != nil {
			return err
		}
	}
	return errors.Join(
		os.Symlink("/run", l.path("var/run")),
		os.Symlink("/run/lock", l.path("var/lock")),
	)
}

// usr binds /usr and covers /usr/local, where machines keep what is theirs.
func (l *layout) usr(workdir string) error {
	l.binds = append(l.binds, Bind{Source: "/usr", Target: l.path("usr")})
	info, err := os.Lstat("/usr/local")
	if err != nil || !info.IsDir() {
		return nil // absent, or a link to a place that is not there inside
	}
	for _, name := range local {
		if err := mkdir(filepath.Join(l.mask, name), 0o755); err != nil {
			return err
		}
	}
	l.binds = append(l.binds, Bind{Source: l.mask, Target: l.path("usr/local")})
	return errors.Join(os.Symlink("share/man", filepath.Join(l.mask, "man")), l.pip(workdir))
}

func (l *layout) merged() error {
	for _, name := range merged {
		info, err := os.Lstat("/" + name)
		switch {
		case err != nil:
			continue
		case info.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink("/" + name)
			if err != nil {
				return err
			}
			if err := os.Symlink(target, l.path(name)); err != nil {
				return err
			}
		case info.IsDir():
			if err := mkdir(l.path(name), 0o755); err != nil {
				return err
			}
			l.binds = append(l.binds, Bind{Source: "/" + name, Target: l.path(name)})
		}
	}
	return nil
}

// points makes the mount points and the working directory.
func (l *layout) points(opts *Options) error {
	for _, name := range append([]string{opts.Workdir}, opts.Dirs...) {
		if strings.Trim(name, "/") == "" || l.bound(name) {
			continue
		}
		if err := mkdir(l.path(name), 0o755); err != nil {
			return err
		}
	}
	for _, name := range opts.Files {
		if err := mkdir(filepath.Dir(l.path(name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(l.path(name), nil, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// bound reports whether a path lies in a part that is the host's; the
// recorder makes such a folder in the layer above when it is used.
func (l *layout) bound(name string) bool {
	first, _, _ := strings.Cut(strings.Trim(filepath.Clean(name), "/"), "/")
	return first == "usr" || slices.Contains(merged, first)
}

// mkdir makes a folder with exactly this mode, whatever the umask, and its
// parents.
func mkdir(dir string, mode fs.FileMode) error {
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		if err = mkdir(filepath.Dir(dir), 0o755); err == nil {
			err = os.Mkdir(dir, 0o755)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	special := mode & 0o1000
	mode &= 0o777
	if special != 0 {
		mode |= fs.ModeSticky
	}
	return os.Chmod(dir, mode)
}
