package execd

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/glassboxhq/glassbox/sandbox"
)

// EnvVariable names the file of variables to the commands, which add lines to
// it for those after them. It belongs into the session's own environment.
const EnvVariable = "EXECD_ENVS"

const maxEnvFile = 1 << 20

// environment is what the file of variables holds. A line
// that is no variable is passed over.
func (h *Handler) environment() (map[string]string, error) {
	env := map[string]string{}
	if h.opts.EnvFile == "" {
		return env, nil
	}
	// It may be anything, as the sandbox may have put it there.
	f, err := os.OpenFile(h.opts.EnvFile, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		defer f.Close()
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil && info.Mode().IsRegular() {
			var text []byte
			text, err = io.ReadAll(io.LimitReader(f, maxEnvFile))
			readEnv(string(text), env)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &sandbox.Error{Op: "read " + h.opts.EnvFile, Code: sandbox.CodeInternal, Err: err}
	}
	return env, nil
}

func readEnv(text string, env map[string]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		key, value, ok := strings.Cut(line, "=")
		value = unquote(value)
		if ok && !strings.HasPrefix(key, "#") && sandbox.ValidateEnv(map[string]string{key: value}) == nil {
			env[key] = value
		}
	}
}

var escapes = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n", `\r`, "\r", `\t`, "\t")

func unquote(value string) string {
	if n := len(value); n >= 2 && value[0] == value[n-1] {
		switch value[0] {
		case '\'':
			return value[1 : n-1]
		case '"':
			return escapes.Replace(value[1 : n-1])
		}
	}
	return value
}

// path reads a path of a client: ~ stands for the home directory. A $ is the
// character, as names may have it.
func (h *Handler) path(name string) string {
	if name == "~" || strings.HasPrefix(name, "~/") {
		return path.Join(h.opts.Home, name[1:])
	}
	return name
}
