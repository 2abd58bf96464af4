package localruntime

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// recorderCopy is a copy of the recorder's binary, with what the original
// looked like then.
type recorderCopy struct {
	path     string
	size     int64
	modified time.Time
}

// recorder returns a copy of the recorder's binary that keeps its name and its
// content: a sandbox starts its recorder again from the file that it began
// with, whatever becomes of the original.
func (rt *Runtime) recorder() (string, error) {
	const op = "find recorder"
	source := rt.opts.Recorder
	info, err := os.Stat(source)
	if source == "" || err != nil {
		return "", &sandbox.Error{
			Op: op, Code: sandbox.CodeIsolation, Err: err,
			Message: "the recorder's binary is not there; build it with make build",
		}
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	known := rt.copies[source]
	if known.size == info.Size() && known.modified.Equal(info.ModTime()) {
		return known.path, nil
	}
	path, err := keepCopy(source, filepath.Join(rt.opts.StateDir, "recorders"))
	if err != nil {
		return "", &sandbox.Error{Op: op, Code: sandbox.CodeInternal, Err: err}
	}
	rt.copies[source] = recorderCopy{path: path, size: info.Size(), modified: info.ModTime()}
	return path, nil
}

// keepCopy copies a program into a folder, under a name made of its content.
func keepCopy(source, folder string) (string, error) {
	in, err := os.Open(source)
	if err != nil {
		return "", fmt.Errorf("copy: %w", err)
	}
	defer in.Close()
	temp := filepath.Join(folder, ".new-"+id.NewRandom()[:8])
	out, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return "", fmt.Errorf("copy: %w", err)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), in)
	err = errors.Join(err, out.Chmod(0o755), out.Close())
	path := filepath.Join(folder, hex.EncodeToString(sum.Sum(nil))[:32])
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("copy %s: %w", source, err), os.Remove(temp))
	}
	return path, nil
}

// dropRecorders removes the copies that no sandbox uses.
func (rt *Runtime) dropRecorders() error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	used := map[string]bool{}
	for _, b := range rt.boxes {
		used[b.record().Recorder] = true
	}
	for _, c := range rt.copies {
		used[c.path] = true
	}
	folder := filepath.Join(rt.opts.StateDir, "recorders")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("drop old recorders: %w", err)
	}
	for _, entry := range entries {
		if path := filepath.Join(folder, entry.Name()); !used[path] {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}
