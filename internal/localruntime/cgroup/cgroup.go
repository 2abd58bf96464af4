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
	"slices"
	"strconv"
	"strings"
	"time"
)

// Tree is the folder at which the control groups of a host are mounted.
type Tree string

// Machine is this machine's tree.
const Machine Tree = "/sys/fs/cgroup"

// Limits are what a sandbox may take; 0: no limit.
type Limits struct {
	Memory int64 // bytes
	CPU    int64 // thousandths of a processor
	Tasks  int64 // processes and threads of the host
	// Quiet are controllers whose limits nobody asked for: that one is not held
	// is no warning.
	Quiet []string
}

// base is the folder of all our groups, below a controller's mount (version
// 1) or the one hierarchy (version 2).
const base = "glassbox"

// period is the span over which a share of the processors is counted, in µs.
const period = 100_000

// setting is one limit, as files of a group, in the order of writing.
type setting struct {
	controller string
	files      []file
}

type file struct {
	name, value string
	optional    bool // not every kernel has it
}

// unified reports whether the host has control groups of version 2 only.
func (t Tree) unified() bool { return exists(filepath.Join(string(t), "cgroup.controllers")) }

func (l Limits) settings(v2 bool) []setting {
	var list []setting
	if l.Memory > 0 {
		most := strconv.FormatInt(l.Memory, 10)
		// Without the second file, what is over the limit would go to the
		// host's swap.
		files := []file{{"memory.limit_in_bytes", most, false}, {"memory.memsw.limit_in_bytes", most, true}}
		if v2 {
			files = []file{{"memory.max", most, false}, {"memory.swap.max", "0", true}, {"memory.oom.group", "1", true}}
		}
		list = append(list, setting{"memory", files})
	}
	if l.CPU > 0 {
		quota := strconv.FormatInt(l.CPU*period/1000, 10)
		files := []file{{"cpu.cfs_period_us", strconv.Itoa(period), false}, {"cpu.cfs_quota_us", quota, false}}
		if v2 {
			files = []file{{"cpu.max", quota + " " + strconv.Itoa(period), false}}
		}
		list = append(list, setting{"cpu", files})
	}
	if l.Tasks > 0 {
		list = append(list, setting{"pids", []file{{"pids.max", strconv.FormatInt(l.Tasks, 10), false}}})
	}
	return list
}

// Make makes the groups for the limits, and returns the folders that a process
// has to join. A limit that cannot be held is a warning.
func (t Tree) Make(id string, limits Limits) (dirs, warnings []string) {
	return t.makeFor(caller(), id, limits)
}

func (t Tree) makeFor(m *member, id string, limits Limits) (dirs, warnings []string) {
	v2 := t.unified()
	for _, s := range limits.settings(v2) {
		dir, err := t.make(m, id, s)
		if err != nil && slices.Contains(limits.Quiet, s.controller) {
			continue
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("the %s limit is not held: no control group could be made (%v)", s.controller, err))
			continue
		}
		if len(dirs) == 0 || dirs[len(dirs)-1] != dir {
			dirs = append(dirs, dir)
		}
	}
	return dirs, warnings
}

func (t Tree) make(m *member, id string, s setting) (string, error) {
	v2 := t.unified()
	top := filepath.Join(string(t), s.controller)
	if v2 {
		below, err := m.place()
		if err != nil {
			return "", err
		}
		top = filepath.Join(string(t), below)
	}
	parent := filepath.Join(top, base)
	dir := filepath.Join(parent, id)
	if !exists(filepath.Join(top, "cgroup.procs")) {
		return "", fmt.Errorf("there is no controller %s in %s", s.controller, t)
	}
	if err := mkdir(parent); err != nil {
		return "", err
	}
	if v2 {
		for _, above := range []string{top, parent} {
			if err := give(above, s.controller); err != nil {
				return "", err
			}
		}
	}
	if err := mkdir(dir); err != nil {
		return "", err
	}
	for _, f := range s.files {
		if err := write(dir, f.name, f.value); err != nil && !f.optional {
			return "", err
		}
	}
	if v2 && m.uid != 0 {
		return dir, m.try(dir)
	}
	return dir, nil
}

// give gives the groups below one a controller. They may have it already.
func give(dir, controller string) error {
	err := write(dir, "cgroup.subtree_control", "+"+controller)
	if err == nil {
		return nil
	}
	text, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control")) // then it has none
	if slices.Contains(strings.Fields(string(text)), controller) {
		return nil
	}
	return err
}

func mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// write writes to a file of a group; the kernel made it.
func write(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// groups returns the folders of a sandbox's groups, whichever there are.
func (t Tree) groups(id string) []string {
	found, _ := filepath.Glob(filepath.Join(string(t), "*", base, id)) // the pattern is ours
	for _, below := range []string{"", delegated(os.Geteuid())} {
		if dir := filepath.Join(string(t), below, base, id); exists(dir) {
			found = append(found, dir)
		}
	}
	return found
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// Killed reports whether a process of the sandbox was killed because the
// memory limit was reached.
func (t Tree) Killed(id string) bool {
	return t.happened(id, "oom_kill", "memory.oom_control", "memory.events")
}

// Full reports whether the sandbox was refused a process or thread because it
// has as many as it may.
func (t Tree) Full(id string) bool { return t.happened(id, "max", "pids.events") }

// happened reports whether one of the files of a sandbox's groups counts an
// event.
func (t Tree) happened(id, event string, files ...string) bool {
	for _, dir := range t.groups(id) {
		for _, name := range files {
			text, _ := os.ReadFile(filepath.Join(dir, name)) // not every group has it
			for line := range strings.Lines(string(text)) {
				if n, ok := strings.CutPrefix(strings.TrimSpace(line), event+" "); ok && n != "0" {
					return true
				}
			}
		}
	}
	return false
}

// Remove removes the groups of a sandbox whose processes have been killed.
func (t Tree) Remove(ctx context.Context, id string) error {
	for _, dir := range t.groups(id) {
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
