package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/internal/localruntime/cgroup"
	"github.com/glassboxhq/glassbox/internal/localruntime/proc"
)

// Finish asks the first process of a sandbox to end, and waits for the end of
// the sandbox: the sandbox's process passes the signal on. A paused one does
// not hear it.
func (e *Engine) Finish(ctx context.Context, ref proc.Ref) error { return ref.Ask(ctx) }

// Remove ends what still runs of a sandbox and removes what the engine made
// for it. It may be called again after it failed, for one that never started,
// and while the launch of an owner that died goes on. As long as a process of
// the sandbox lives, it fails and removes nothing.
func (e *Engine) Remove(ctx context.Context, id, dir string, ref proc.Ref) error {
	// Nothing has to be asked of runsc, which could hang or be gone.
	if err := ref.End(ctx); err != nil {
		return err
	}
	if err := e.endAll(ctx, dir, ref == (proc.Ref{})); err != nil {
		return fmt.Errorf("end sandbox: %w", err)
	}
	err := cgroup.Machine.Remove(ctx, id)
	for _, place := range []string{"/var/run", "/run", "/tmp"} {
		// Where runsc puts its control socket when our path is too long.
		if rm := os.Remove(filepath.Join(place, "runsc-"+id+".sock")); rm != nil && !errors.Is(rm, os.ErrNotExist) {
			err = errors.Join(err, rm)
		}
	}
	for _, name := range []string{bundleDir, overlayDir, stateDir, launchFile, pidFile, consoleLog, runscLog, lockFile} {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, name)))
	}
	if err != nil {
		return fmt.Errorf("remove sandbox: %w", err)
	}
	return nil
}

// settle is longer than a process takes to become another program, in which it
// has no command line to be found by.
const settle = 25 * time.Millisecond

// endAll kills the launch of a sandbox and all that it has started, until
// nothing is left. A launch that nobody waited for may just be starting
// processes, so one empty search is not enough for it.
func (e *Engine) endAll(ctx context.Context, dir string, launching bool) error {
	tick := time.NewTicker(settle)
	defer tick.Stop()
	for quiet := 0; ; {
		going, err := launchGoes(dir)
		if err != nil {
			return err
		}
		found, err := e.Processes(dir)
		if err != nil {
			return err
		}
		for _, ref := range found {
			if err := ref.End(ctx); err != nil {
				return err
			}
		}
		quiet++
		if going {
			launching, quiet = true, 0
		}
		if len(found) > 0 {
			quiet = 0
		}
		if quiet > 1 || quiet == 1 && !launching {
			return nil
		}
		if len(found) > 0 && !going {
			continue // look again, at once
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the launch of the sandbox goes on: %w", context.Cause(ctx))
		}
	}
}

// Processes returns the processes of this machine that belong to a sandbox:
// its launch, and what that has started.
func (e *Engine) Processes(dir string) ([]proc.Ref, error) {
	// A sandbox's folder has the name of its id, which no other has, so the
	// way to the folder need not be the same as it was.
	folder := string(filepath.Separator) + filepath.Base(dir) + string(filepath.Separator)
	word := ""
	if len(e.SelfArgs) > 0 {
		word = e.SelfArgs[len(e.SelfArgs)-1]
	}
	return proc.Search(func(args []string) bool {
		n := len(args)
		if n > 1 && strings.HasSuffix(args[n-1], folder+launchFile) && (word == "" || args[n-2] == word) {
			return true
		}
		return slices.ContainsFunc(args, func(arg string) bool {
			return strings.HasPrefix(arg, "--root=") && strings.HasSuffix(arg, folder+stateDir)
		})
	})
}

// holdLaunch returns a file whose lock is held as long as a process has it
// open. It is handed to the launch, so that whoever comes after an owner that
// died can tell whether the launch still goes on.
func holdLaunch(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("hold launch: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("hold launch: %w", err)
	}
	return file, nil
}

// launchGoes reports whether a process of the launch is still at work.
func launchGoes(dir string) (bool, error) {
	file, err := os.Open(filepath.Join(dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at launch: %w", err)
	}
	defer file.Close()
	err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at launch: %w", err)
	}
	return false, nil
}
