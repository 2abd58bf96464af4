package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// What an installation takes at most.
const (
	lockWithin  = 20 * time.Second // another one is at work
	startWithin = 15 * time.Second
	maxLog      = 1 << 20
)

// install puts this program, which lies somewhere in the recorder's folder
// under a name of its own, into its place, and starts it. A recorder that
// answers is left as it is while it works, or if it is as new.
func install(ctx context.Context, bootFile, hash string) error {
	boot, err := readBoot(bootFile)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the recorder: %w", err)
	}
	if err := checkHash(self, hash); err != nil {
		return err
	}
	// What is not taken into use goes again.
	defer os.Remove(bootFile)
	defer func() {
		if self != wire.InstalledRecorder(boot.HistoryDir) {
			_ = os.Remove(self)
		}
	}()
	unlock, err := waitLock(ctx, filepath.Join(boot.HistoryDir, "install.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if keep(ctx, boot.HistoryDir) {
		return nil
	}
	if err := endInstalled(ctx, boot.HistoryDir); err != nil {
		return err
	}
	if err := place(boot, self); err != nil {
		return err
	}
	return launch(ctx, boot.HistoryDir)
}

// checkHash tells whether the program came whole: whoever writes over it at
// the same time would leave a mix.
func checkHash(self, want string) error {
	f, err := os.Open(self)
	if err != nil {
		return fmt.Errorf("read the recorder: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return fmt.Errorf("read the recorder: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return fmt.Errorf("the recorder came damaged: its SHA-256 is %s, not %s; try again", got, want)
	}
	return nil
}

// waitLock takes a lock that other installations hold for a moment.
func waitLock(ctx context.Context, name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the recorder's folder: %w", err)
	}
	if !await(ctx, lockWithin, func() bool { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }) {
		f.Close()
		return nil, fmt.Errorf("another installation has been at work for %v", lockWithin)
	}
	return func() { f.Close() }, nil
}

// place moves the program to where it stays, and writes its boot file there.
// The token stays, so that other clients find the recorder again.
func place(boot *wire.Boot, self string) error {
	name := wire.InstalledRecorder(boot.HistoryDir)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("make the recorder's folder: %w", err)
	}
	if err := os.Rename(self, name); err != nil {
		return fmt.Errorf("put the recorder into its place: %w", err)
	}
	bootFile := wire.InstalledBoot(boot.HistoryDir)
	if before, err := readBoot(bootFile); err == nil && before.SandboxID == boot.SandboxID {
		boot.Token = before.Token
	} else if err == nil {
		if err := setAside(boot.HistoryDir, before.SandboxID); err != nil {
			return fmt.Errorf("set another sandbox's history aside: %w", err)
		}
	}
	if boot.Token == "" {
		boot.Token = rand.Text()
	}
	useWorkdir(boot)
	text, err := json.Marshal(boot)
	if err == nil {
		err = replaceFile(bootFile, text)
	}
	if err != nil {
		return fmt.Errorf("write the boot file: %w", err)
	}
	return nil
}

// setAside renames the files of a history that is another sandbox's: this one
// was made from its files, as by a snapshot.
func setAside(dir, of string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if of == "" || len(of) > 128 || strings.ContainsFunc(of, func(r rune) bool {
		return r > 127 || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_'
	}) {
		of = rand.Text() // the file may hold anything
	}
	for _, entry := range entries {
		name, rest, found := strings.Cut(entry.Name(), ".sqlite3")
		if !found || strings.Contains(name, "-of-") {
			continue
		}
		err = errors.Join(err, os.Rename(filepath.Join(dir, entry.Name()), filepath.Join(dir, name+"-of-"+of+".sqlite3"+rest)))
	}
	return err
}

// useWorkdir makes the working directory; where nobody asked for one, a user
// who may not make the usual one works at home.
func useWorkdir(boot *wire.Boot) {
	if !boot.AnyWorkdir || os.MkdirAll(boot.Workdir, 0o755) == nil {
		return
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		boot.Workdir = home
	}
}

// launch starts the recorder on its own, and waits until it answers.
func launch(ctx context.Context, dir string) error {
	// What tells of a recorder before must not be taken for this one.
	if err := os.Remove(filepath.Join(dir, wire.DoorFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the old door: %w", err)
	}
	logFile, err := openLog(filepath.Join(dir, "recorder.log"))
	if err != nil {
		return err
	}
	defer logFile.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	name := wire.InstalledRecorder(dir)
	_, err = syscall.ForkExec(name, []string{name, "init", "--boot", wire.InstalledBoot(dir)}, &syscall.ProcAttr{
		Dir: "/", Env: ownEnvironment(), Files: []uintptr{null.Fd(), logFile.Fd(), logFile.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("start the recorder: %w", err)
	}
	answers := await(ctx, startWithin, func() bool {
		door, err := readDoor(dir)
		if err != nil {
			return false
		}
		_, err = askDoor(ctx, door)
		return err == nil
	})
	if !answers {
		return fmt.Errorf("the recorder does not answer within %v; %s says: %s", startWithin, logFile.Name(), lastLine(logFile.Name()))
	}
	return nil
}

// openLog opens what the recorder says, which nobody keeps small but us.
func openLog(name string) (*os.File, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if info, err := os.Stat(name); err == nil && info.Size() > maxLog {
		flags |= os.O_TRUNC
	}
	return os.OpenFile(name, flags, 0o600)
}

func lastLine(name string) string {
	text, err := os.ReadFile(name)
	if err != nil || len(text) > 2*maxLog {
		return "nothing"
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// notInherited are variables of whoever has started us, not of the sandbox.
var notInherited = []string{native.OperationVariable, envExecdToken, "PWD", "OLDPWD", "SHLVL", "_"}

// ownEnvironment is the sandbox's environment, which every command gets.
func ownEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(notInherited, name)
	})
}
