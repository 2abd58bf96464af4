package image

import (
	"errors"
	"os"
	"path"
	"strings"

	"github.com/glassboxhq/glassbox/internal/localruntime/userland"
)

// Points are the places at which a sandbox gets something of this machine or of
// its kernel. One that is missing would be made by gVisor in what lies below
// the sandbox's own layer, which all sandboxes of an image share.
type Points struct {
	Dirs, Files []string
}

// furnish puts into an image what every sandbox has.
func (u *unpacker) furnish(hostname string, points Points) error {
	u.put = nil
	for _, name := range append([]string{"dev", "proc", "sys", "etc"}, points.Dirs...) {
		if _, err := u.enter(strings.Trim(name, "/"), true); err != nil {
			return err
		}
	}
	for _, name := range points.Files {
		if err := u.write(strings.Trim(name, "/"), "", 0o755); err != nil {
			return err
		}
	}
	for name, text := range userland.Network(hostname) {
		if err := u.write("etc/"+name, text, 0o644); err != nil {
			return err
		}
	}
	// gVisor would put a tmpfs over an empty /tmp, and files there would take
	// memory instead of disk.
	_, err := u.enter("tmp/.X11-unix", true)
	u.dirs["tmp"] = folder{mode: 0o777 | os.ModeSticky}
	u.dirs["tmp/.X11-unix"] = u.dirs["tmp"]
	return err
}

// write makes a file of ours, whatever the image has in its place.
func (u *unpacker) write(name, text string, mode os.FileMode) error {
	dir, err := u.enter(path.Dir(name), true)
	if err != nil {
		return err
	}
	base := path.Base(name)
	if err := u.displace(dir, base); err != nil {
		return err
	}
	f, err := dir.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Chmod(mode), f.Close())
}
