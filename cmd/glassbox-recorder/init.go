package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const (
	restartMin  = 5 * time.Millisecond
	restartMax  = time.Second
	expiryEvery = time.Second
	endTimeout  = 8 * time.Second
)

// runInit is process 1: it starts the recorder and starts it again when it
// dies, reaps what has lost its parent, and ends the sandbox at its expiry,
// so that none outlives it when no host looks.
func runInit(bootFile string, logger *slog.Logger) error {
	boot, err := readBoot(bootFile)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	child, err := startRecorder(bootFile)
	if err != nil {
		return err
	}
	started, wait := time.Now(), restartMin
	restart := make(<-chan time.Time)
	expiry := time.NewTicker(expiryEvery)
	defer expiry.Stop()
	for {
		select {
		case sig := <-signals:
			if sig != syscall.SIGCHLD {
				return endRecorder(child, signals)
			}
			if !reap(child) {
				continue
			}
			if time.Since(started) > 10*wait { // it did not die of its start
				wait = restartMin
			}
			logger.Warn("the recorder died and is started again", "after", wait)
			restart, child = time.After(wait), 0
			wait = min(2*wait, restartMax)
		case <-restart:
			if child, err = startRecorder(bootFile); err != nil {
				return err
			}
			started = time.Now()
		case <-expiry.C:
			if expired(boot.ExpiryFile) {
				return endRecorder(child, signals)
			}
		}
	}
}

func startRecorder(bootFile string) (pid int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("find the recorder: %w", err)
	}
	// The pid is all that is kept: reap waits for every child, so os/exec,
	// which waits for its own, would fall out with it.
	pid, err = syscall.ForkExec(self, []string{self, "serve", "--boot", bootFile}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("start the recorder: %w", err)
	}
	return pid, nil
}

// reap waits for all that has ended, and reports whether child was among it.
func reap(child int) (died bool) {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return died
		}
		died = died || pid == child
	}
}

// endRecorder lets the recorder finish its records.
func endRecorder(child int, signals <-chan os.Signal) error {
	if child == 0 {
		return nil
	}
	if err := syscall.Kill(child, syscall.SIGTERM); err != nil {
		return nil // it has ended
	}
	deadline := time.After(endTimeout)
	for {
		select {
		case <-signals:
			if reap(child) {
				return nil
			}
		case <-deadline:
			return errors.New("the recorder did not end in time")
		}
	}
}

// expired reads the sandbox's end from the file that the host keeps.
func expired(name string) bool {
	if name == "" {
		return false
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return false // no expiry was given
	}
	at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(b)))
	return err == nil && time.Now().After(at)
}
