package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/internal/bench/report"
	"github.com/glassboxhq/glassbox/internal/program"
)

// machine tells where this runs. What cannot be found out stays empty.
func machine(ctx context.Context) report.Machine {
	m := report.Machine{
		CPU: field("/proc/cpuinfo", "model name", ":"), Cores: runtime.NumCPU(), Go: runtime.Version(),
		OS: strings.Trim(field("/etc/os-release", "PRETTY_NAME", "="), `"`), Runsc: runscVersion(ctx),
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m.MemoryBytes = int64(info.Totalram) * int64(info.Unit)
		m.Load = float64(info.Loads[0]) / (1 << 16)
	}
	var names unix.Utsname
	if unix.Uname(&names) == nil {
		m.Kernel = unix.ByteSliceToString(names.Release[:])
	}
	return m
}

// field reads a value from lines of names and values.
func field(file, name, separator string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), separator); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// runscVersion is what runsc says. One that was built from its module says
// nothing, but then it is of the version that we name.
func runscVersion(ctx context.Context) string {
	runsc := program.Runsc()
	path, err := runsc.Look()
	if err != nil {
		return ""
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	line, _, _ := strings.Cut(string(out), "\n")
	if said := strings.TrimPrefix(line, "runsc version "); err == nil && said != "" && said != "VERSION_MISSING" {
		return said
	}
	return runsc.Version
}

// dockerVersion is the engine's, and the server's that makes sandboxes by it.
func dockerVersion(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "docker", "version", "--format", "Docker {{.Server.Version}}").Output()
	if err != nil {
		return ""
	}
	execd := "an execd of ours"
	if os.Getenv("GLASSBOX_EXECD") != "" {
		execd = "its own execd"
	}
	return strings.TrimSpace(string(out)) + ", opensandbox-server 1.1.1 with " + execd
}

// commit is that of the source tree. What a run itself writes does not count
// as a change.
func commit(ctx context.Context) string {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return ""
	}
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ".", ":!"+reportFile, ":!"+remoteFile, ":!README.md").Output()
	if err != nil || len(changes) > 0 {
		return fmt.Sprintf("%s+changes", bytes.TrimSpace(head))
	}
	return string(bytes.TrimSpace(head))
}
