package userland

import (
	"os"
	"path"
	"path/filepath"
	"strings"
)

// VenvBin is the folder of programs of the virtual environment that pip makes
// in a working directory. It stands first on the PATH of a sandbox; empty: it
// cannot stand there, or pip does not start in such a folder.
func VenvBin(workdir string) string {
	if strings.ContainsAny(workdir, ":\"\n") {
		return ""
	}
	return path.Join(workdir, ".venv", "bin")
}

// pipScript takes the place of pip until there is a virtual environment: many
// systems have no pip, or one that refuses to install anything beside the
// system's own packages. Making the environment takes seconds, so it is made
// when it is needed.
const pipScript = `#!/bin/sh
# Makes the virtual environment that stands first on PATH, and calls its pip.
venv=VENV
name=${0##*/}
python=/usr/bin/python3
if [ ! -x "$venv/bin/pip" ]; then
  if "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    exec 9>/tmp/.venv.lock
    if command -v flock >/dev/null; then flock 9; fi
    if [ ! -x "$venv/bin/pip" ]; then
      echo "making a virtual environment in $venv" >&2
      "$python" -m venv --system-site-packages "$venv" 9>&- || exit
    fi
    exec 9>&-
  elif [ -x "/usr/bin/$name" ]; then
    exec "/usr/bin/$name" "$@"
  else
    echo "$name: this machine's python3 has neither pip nor ensurepip; glassbox doctor, outside, tells what to install" >&2
    exit 127
  fi
fi
exec "$venv/bin/$name" "$@"
`

// pip puts pip where it is found when no environment has one.
func (l *layout) pip(workdir string) error {
	if VenvBin(workdir) == "" {
		return nil
	}
	venv := "'" + strings.ReplaceAll(path.Join(workdir, ".venv"), "'", `'\''`) + "'"
	script := strings.Replace(pipScript, "VENV", venv, 1)
	for _, name := range []string{"pip", "pip3"} {
		name = filepath.Join(l.mask, "bin", name)
		if err := writeFile(name, script); err != nil {
			return err
		}
		if err := os.Chmod(name, 0o755); err != nil { //nolint:gosec // everybody starts it
			return err
		}
	}
	return nil
}
