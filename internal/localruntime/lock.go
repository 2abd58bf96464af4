package localruntime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/internal/localruntime/proc"
	"github.com/glassboxhq/glassbox/sandbox"
)

// ErrOwned says that another process owns the state folder; it can be reached
// through the state socket.
var ErrOwned = errors.New("the state folder is in use")

// takeLock makes this process the owner of the state folder. The kernel gives
// the lock back when the process ends, however it ends.
func takeLock(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock state folder: %w", err)
	}
	err = lockFile(file)
	if errors.Is(err, unix.EWOULDBLOCK) {
		owner := "another process"
		if pid, ok := readOwner(file); ok {
			owner = "process " + strconv.Itoa(pid)
		}
		file.Close()
		return nil, &sandbox.Error{
			Op: "open state folder", Code: sandbox.CodeUnavailable, Err: ErrOwned,
			Message: dir + " belongs to " + owner + "; use that server, stop it, or give another folder with --state-dir",
		}
	}
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock state folder: %w", err)
	}
	return file, nil
}

// lockPatience is how long the lock of an owner that died is waited for.
const lockPatience = 2 * time.Second

// lockFile locks a file, or gives EWOULDBLOCK. A program that an owner was just
// starting when it died holds the lock for some moments longer.
func lockFile(file *os.File) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(lockPatience); ; <-tick.C {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
		pid, ok := readOwner(file)
		if _, gone := proc.Find(pid); ok && gone == nil {
			return err
		}
	}
}

func readOwner(file *os.File) (int, bool) {
	var text [32]byte
	n, _ := file.ReadAt(text[:], 0) // a short file is an error, too
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	return pid, err == nil
}
