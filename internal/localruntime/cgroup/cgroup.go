// Package cgroup holds the limits of a sandbox by control groups of the host,
// version 1 or 2, where they may be made.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Limits are what a sandbox may take; 0: no limit.
type Limits struct {
	Memory int64 // bytes
	CPU    int64 // thousandths of a processor
}

// base is the folder of all our groups, below a controller's mount (version
// 1) or the one hierarchy (version 2).
const base = "glassbox"

var mount = "/sys/fs/cgroup"

// period is the span over which a share of the processors is counted, in µs.
const period = 100_000

// unified reports whether the host has control groups of version 2 only.
func unified() bool {
	_, err := os.Stat(filepath.Join(mount, "cgroup.controllers"))
	return err == nil
}

// Make makes the groups for the limits, and returns the folders that a process
// has to join. A limit that cannot be held is a warning.
func Make(id string, limits Limits) (dirs, warnings []string) {
	type setting struct {
		name, controller string
		files            map[string]string
		wanted           bool
	}
	v2 := unified()
	memory := setting{name: "memory", controller: "memory", wanted: limits.Memory > 0}
	cpu := setting{name: "cpu", controller: "cpu", wanted: limits.CPU > 0}
	quota := strconv.FormatInt(limits.CPU*period/1000, 10)
	if v2 {
		memory.files = map[string]string{"memory.max": strconv.FormatInt(limits.Memory, 10), "memory.oom.group": "1"}
		cpu.files = map[string]string{"cpu.max": quota + " " + strconv.Itoa(period)}
	} else {
		memory.files = map[string]string{"memory.limit_in_bytes": strconv.FormatInt(limits.Memory, 10)}
		cpu.files = map[string]string{"cpu.cfs_period_us": strconv.Itoa(period), "cpu.cfs_quota_us": quota}
	}
	for _, s := range []setting{memory, cpu} {
		if !s.wanted {
			continue
		}
		dir, err := make1(v2, s.controller, id, s.files)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("the %s limit is not held: no control group could be made (%v)", s.name, err))
			continue
		}
		if len(dirs) == 0 || dirs[len(dirs)-1] != dir {
			dirs = append(dirs, dir)
		}
	}
	return dirs, warnings
}

func make1(v2 bool, controller, id string, files map[string]string) (string, error) {
	top := filepath.Join(mount, controller)
	if v2 {
		top = mount
	}
	parent := filepath.Join(top, base)
	if _, err := os.Stat(filepath.Join(top, "cgroup.procs")); err != nil {
		return "", err
	}
	if err := os.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if v2 {
		for _, dir := range []string{top, parent} {
			if err := write(dir, "cgroup.subtree_control", "+"+controller); err != nil {
				return "", err
			}
		}
	}
	dir := filepath.Join(parent, id)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	for name, value := range files {
		if err := write(dir, name, value); err != nil {
			return "", errors.Join(err, os.Remove(dir))
		}
	}
	return dir, nil
}

func write(dir, name, value string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(value), 0)
}

// groups returns the folders of a sandbox's groups, whichever there are.
func groups(id string) []string {
	found, _ := filepath.Glob(filepath.Join(mount, "*", base, id)) // the pattern is ours
	if dir := filepath.Join(mount, base, id); exists(dir) {
		found = append(found, dir)
	}
	return found
}

func exists(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

// Killed reports whether a process of the sandbox was killed because the
// memory limit was reached.
func Killed(id string) bool {
	for _, dir := range groups(id) {
		for _, name := range []string{"memory.oom_control", "memory.events"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				continue
			}
			for line := range strings.Lines(string(text)) {
				if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok && n != "0" {
					return true
				}
			}
		}
	}
	return false
}

// Remove removes the groups of a sandbox whose processes have been killed.
func Remove(ctx context.Context, id string) error {
	for _, dir := range groups(id) {
		if err := remove(ctx, dir); err != nil {
			return fmt.Errorf("remove control group: %w", err)
		}
	}
	return nil
}

// remove waits for the last process to leave: a killed one is in its group
// until it is gone from memory.
func remove(ctx context.Context, dir string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := os.Remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
