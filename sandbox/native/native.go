// Package native is a sandbox.Session on this very machine: what the recorder
// works with inside a sandbox. It isolates nothing.
package native

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/glassboxhq/glassbox/sandbox"
)

// OperationVariable is the environment variable by which every process of a
// command carries the id of its operation.
const OperationVariable = "GLASSBOX_OPERATION"

// Options set up a Session.
type Options struct {
	// Workdir is where commands run and relative paths begin; it is made when
	// it is first needed. Empty: the process's own.
	Workdir string
	// Env is the environment of every command. Nil: the process's own.
	Env map[string]string
	// Protected are directories below which nothing is written or removed.
	Protected []string
	// Mask hides secrets in the texts of which diffs are made, by as many
	// bytes; nil: nothing is hidden.
	Mask func(text string) string
	// User is as whom commands run, and to whom new files belong; nil: this
	// process's own. Only root can do that for another.
	User *User
	// Scripts is a private directory for commands too long for an argument
	// list. Empty: the temporary directory.
	Scripts string
}

// Session runs commands and touches files on this machine.
type Session struct {
	opts     Options
	running  sync.WaitGroup
	renaming sync.Mutex // see rename
	// appending lets one writer at a time add to the end of a file.
	appending sync.Mutex
	owners    owners
}

var _ interface {
	sandbox.Session
	sandbox.Starter
	sandbox.Files
} = (*Session)(nil)

// New returns a session.
func New(opts *Options) (*Session, error) {
	s := &Session{}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Workdir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, fault("find the working directory", err)
		}
		s.opts.Workdir = dir
	}
	if !path.IsAbs(s.opts.Workdir) {
		return nil, sandbox.Invalid("workdir", "must be an absolute path")
	}
	s.opts.Workdir = path.Clean(s.opts.Workdir)
	if s.opts.Env == nil {
		s.opts.Env = environ()
	}
	return s, nil
}

// Run implements sandbox.Session.
func (s *Session) Run(ctx context.Context, cmd *sandbox.Command) (*sandbox.Result, error) {
	return sandbox.RunProcess(ctx, s, cmd)
}

// Capabilities implements sandbox.Session.
func (s *Session) Capabilities() sandbox.Capabilities {
	return sandbox.Capabilities{ExactBytes: true, Stdin: true, Signals: true, Background: true, Terminals: true, Files: true}
}

// Close waits for the commands that were stopped to be gone.
func (s *Session) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return sandbox.FromContext(ctx, "wait for running commands")
	}
}

// findShell returns bash, or sh where there is no bash.
func (s *Session) findShell() string {
	for _, name := range []string{"bash", "sh"} {
		for _, dir := range append(strings.Split(s.opts.Env["PATH"], ":"), "/bin", "/usr/bin") {
			file := path.Join(dir, name)
			if info, err := os.Stat(file); path.IsAbs(file) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return file
			}
		}
	}
	return "/bin/sh"
}

// environment is the session's with that of the command over it.
func (s *Session) environment(cmd *sandbox.Command) []string {
	env := maps.Clone(s.opts.Env)
	maps.Copy(env, cmd.Env)
	if _, given := cmd.Env["TERM"]; !given && cmd.Terminal != nil {
		env["TERM"] = "xterm-256color"
	}
	if cmd.ID != "" {
		env[OperationVariable] = cmd.ID
	}
	list := make([]string, 0, len(env))
	for _, key := range slices.Sorted(maps.Keys(env)) {
		list = append(list, key+"="+env[key])
	}
	return list
}

// lookPath finds a program as the command's own PATH and directory say.
func (s *Session) lookPath(cmd *sandbox.Command, dir string) (string, error) {
	name := cmd.Args[0]
	if strings.Contains(name, "/") {
		return sandbox.Resolve(dir, name), nil
	}
	search, ok := cmd.Env["PATH"]
	if !ok {
		search = s.opts.Env["PATH"]
	}
	denied := false
	for entry := range strings.SplitSeq(search, ":") {
		file := path.Join(sandbox.Resolve(dir, entry), name)
		info, err := os.Stat(file)
		if err != nil || info.IsDir() {
			continue
		}
		if info.Mode()&0o111 != 0 {
			return file, nil
		}
		denied = true
	}
	if denied {
		return "", os.ErrPermission
	}
	return "", exec.ErrNotFound
}

func environ() map[string]string {
	env := map[string]string{}
	for _, entry := range os.Environ() {
		if key, value, ok := strings.Cut(entry, "="); ok && key != "" {
			env[key] = value
		}
	}
	return env
}

// Workdir is where commands run that name no directory.
func (s *Session) Workdir() string { return s.opts.Workdir }
