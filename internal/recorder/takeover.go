package recorder

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// pidFile lies in the recorder's directory while one runs, or after one died.
const pidFile = "recorder.pid"

// TakeOver settles what a recorder that died has left: its operations that
// still ran become unknown, their processes are killed, and the restart itself
// is recorded. variable names the environment variable by which a process
// carries the id of its operation. It returns what a clean end calls.
func TakeOver(ctx context.Context, store history.Store, dir, variable string) (release func() error, err error) {
	file := filepath.Join(dir, pidFile)
	before, err := os.ReadFile(file)
	died := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &sandbox.Error{Op: "take over", Code: sandbox.CodeInternal, Err: err}
	}
	pid := []byte(strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(file, pid, 0o600); err != nil {
		return nil, &sandbox.Error{Op: "take over", Code: sandbox.CodeInternal, Err: err}
	}
	release = func() error { return os.Remove(file) }
	if store == nil {
		return release, nil
	}
	interrupted, err := lost(ctx, store)
	if err != nil || !died && len(interrupted) == 0 {
		return release, err
	}
	killed := kill(interrupted, variable)
	now := time.Now()
	err = store.Import(ctx, &history.Operation{
		ID: id.New(), Type: history.RecorderRestart, Status: sandbox.Succeeded, Source: history.SourceSDK,
		Actor: history.Actor{Type: history.System}, StartedAt: now, CompletedAt: now,
		Request: history.EncodeRequest(map[string]any{"previous_pid": string(before)}),
		Result: history.Encode(map[string]any{
			"interrupted_operations": len(interrupted), "killed_processes": killed,
			"reason": "the recorder before this one ended without saying so",
		}),
	})
	if errors.Is(err, sandbox.ErrHistory) {
		err = nil // the recorder stays up; operations tell what is wrong
	}
	return release, err
}

func lost(ctx context.Context, store history.Store) ([]string, error) {
	r, ok := store.(history.Recoverer)
	if !ok {
		return nil, nil
	}
	ids, err := r.Recover(ctx, "the recorder died while this ran")
	if errors.Is(err, sandbox.ErrHistory) {
		return nil, nil // as above
	}
	return ids, err
}

// kill ends every process that carries the id of one of the operations in the
// environment that it was started with: a number of a process can be given
// away again, this cannot. It looks until a look finds none, since a process
// can start another, or be between two programs, while it is looked for.
func kill(operations []string, variable string) int {
	if len(operations) == 0 {
		return 0
	}
	marks := make([][]byte, len(operations))
	for i, op := range operations {
		marks[i] = []byte(variable + "=" + op)
	}
	killed := map[int]bool{}
	for idle, looks := 0, 0; idle < 2 && looks < maxLooks; looks++ {
		before := len(killed)
		killMarked(marks, killed)
		if idle++; len(killed) > before {
			idle = 0
		}
	}
	return len(killed)
}

// maxLooks bounds the looks at what starts processes faster than they are
// killed.
const maxLooks = 20

// killMarked looks once, and adds what it has killed.
func killMarked(marks [][]byte, killed map[int]bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid <= 1 || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + entry.Name() + "/environ")
		if err != nil {
			continue // it ended, or is not ours
		}
		carried := func(mark []byte) bool { return carries(env, mark) }
		if !slices.ContainsFunc(marks, carried) {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil && p.Kill() == nil {
			killed[pid] = true
		}
	}
}

func carries(env, mark []byte) bool {
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(entry, mark) {
			return true
		}
	}
	return false
}

// Sweep removes what a recorder that died left in its private directory.
func Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return &sandbox.Error{Op: "sweep " + dir, Code: sandbox.CodeInternal, Err: err}
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "command-") || strings.HasPrefix(entry.Name(), "spool-") {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return &sandbox.Error{Op: "sweep " + dir, Code: sandbox.CodeInternal, Err: err}
			}
		}
	}
	return nil
}
