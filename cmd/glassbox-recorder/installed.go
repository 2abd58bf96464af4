package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/glassboxhq/glassbox/internal/version"
	"github.com/glassboxhq/glassbox/internal/wire"
)

// askWithin is what a recorder that is there has to answer.
const askWithin = 2 * time.Second

// await asks again and again until it is so, and reports whether it came to be
// within a time.
func await(ctx context.Context, within time.Duration, so func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for !so() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

// keep reports whether the recorder that is there is to stay. One that is
// being started again is given a moment.
func keep(ctx context.Context, dir string) bool {
	door, err := readDoor(dir)
	if err != nil {
		return false
	}
	var info *wire.Info
	answers := await(ctx, askWithin, func() bool {
		if info, err = askDoor(ctx, door); err != nil {
			if again, readErr := readDoor(dir); readErr == nil {
				door = again
			}
		}
		return err == nil || len(installed(dir)) == 0
	})
	if !answers || err != nil {
		return false
	}
	older := info.Protocol < wire.Protocol || version.Less(info.Version, version.String())
	return !older || info.Running > 0
}

func readDoor(dir string) (*wire.Door, error) {
	text, err := os.ReadFile(filepath.Join(dir, wire.DoorFile))
	if err != nil {
		return nil, err
	}
	door := &wire.Door{}
	return door, json.Unmarshal(text, door)
}

func askDoor(ctx context.Context, door *wire.Door) (*wire.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(door.Port)+wire.PathInfo, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set(wire.HeaderToken, door.Token)
	resp, err := (&http.Transport{}).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New("it answers " + resp.Status)
	}
	info := &wire.Info{}
	return info, json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(info)
}

// installed lists the processes of the program in its place, but this one.
func installed(dir string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		exe, err := os.Readlink("/proc/" + entry.Name() + "/exe")
		if err == nil && strings.TrimSuffix(exe, " (deleted)") == wire.InstalledRecorder(dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// endInstalled ends the recorder that is there: it finishes its records, or is
// killed.
func endInstalled(ctx context.Context, dir string) error {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, pid := range installed(dir) {
			_ = syscall.Kill(pid, sig) // it may have ended
		}
		if await(ctx, endTimeout+time.Second, func() bool { return len(installed(dir)) == 0 }) {
			return nil
		}
	}
	return errors.New("the recorder that is there does not end")
}

// uninstall ends the recorder and takes out what an installation has put in.
// The history stays if it is to be kept.
func uninstall(ctx context.Context, dir string, keepHistory bool) error {
	if err := endInstalled(ctx, dir); err != nil {
		return err
	}
	if !keepHistory {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.Contains(entry.Name(), ".sqlite3") {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}
