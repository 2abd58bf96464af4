package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime/cgroup"
	"github.com/glassboxhq/glassbox/internal/localruntime/proc"
)

// Options name what is looked for.
type Options struct {
	Runsc, Recorder string // paths; empty: not found
	StateDir        string
	Start           func(ctx context.Context) error
}

// Machine returns the probes of this machine.
func Machine(opts *Options) *Probes {
	return &Probes{
		EUID:      os.Geteuid,
		OS:        func() string { return osID("/etc/os-release") },
		Kernel:    kernel,
		Container: container,
		Runsc:     func(ctx context.Context) (string, error) { return version(ctx, opts.Runsc, "--version") },
		Recorder:  func(ctx context.Context) (string, error) { return version(ctx, opts.Recorder, "version") },
		Python:    python,
		Mount:     mount,
		Setting:   func() *Setting { return setting("/proc/sys") },
		Limits:    limits,
		Disk:      func() (uint64, error) { return disk(opts.StateDir) },
		Start:     opts.Start,
	}
}

func version(ctx context.Context, program, arg string) (string, error) {
	if program == "" {
		return "", ErrNotFound
	}
	out, err := exec.CommandContext(ctx, program, arg).CombinedOutput()
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, first)
	}
	// A runsc that the Go tool built was not told its version.
	if name, ok := strings.CutSuffix(first, " version VERSION_MISSING"); ok {
		first = name + " starts"
	}
	return first, nil
}

// python asks the python3 that sandboxes of the image host see: the one under
// /usr, whatever stands before it in this user's PATH.
func python(ctx context.Context) (string, bool, error) {
	v, err := version(ctx, "/usr/bin/python3", "--version")
	if err != nil {
		return "", false, err
	}
	venv := exec.CommandContext(ctx, "/usr/bin/python3", "-c", "import venv, ensurepip").Run()
	return v, venv == nil, nil
}

// mount tries to start a program as the launch of a sandbox is started.
func mount(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "/bin/true")
	cmd.SysProcAttr = proc.Namespaces(os.Geteuid(), os.Getegid())
	err := cmd.Run()
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno // without the name of the program, which has no part in it
	}
	return err
}

func limits(ctx context.Context) error {
	name := "doctor-" + id.NewRandom()[:8]
	_, warnings := cgroup.Machine.Make(name, cgroup.Limits{Memory: 64 << 20, CPU: 1000, Tasks: 64})
	if err := cgroup.Machine.Remove(ctx, name); err != nil {
		return err
	}
	if len(warnings) > 0 {
		return errors.New(strings.Join(warnings, "; "))
	}
	return nil
}

// disk looks at the folder, or at the nearest one above that is there.
func disk(dir string) (uint64, error) {
	for {
		var stat unix.Statfs_t
		err := unix.Statfs(dir, &stat)
		if err == nil {
			return stat.Bavail * uint64(stat.Bsize), nil
		}
		cut := strings.LastIndexByte(strings.TrimRight(dir, "/"), '/')
		if cut < 0 || !errors.Is(err, unix.ENOENT) {
			return 0, err
		}
		dir = dir[:cut+1]
	}
}

// setting returns the first setting below a folder as /proc/sys that keeps
// ordinary users from user namespaces.
func setting(folder string) *Setting {
	for _, s := range []Setting{
		{"user.max_user_namespaces", "0", "15000"},
		{"kernel.unprivileged_userns_clone", "0", "1"},
		{"kernel.apparmor_restrict_unprivileged_userns", "1", "0"},
	} {
		text, err := os.ReadFile(folder + "/" + strings.ReplaceAll(s.Name, ".", "/"))
		if err == nil && strings.TrimSpace(string(text)) == s.Value {
			return &s
		}
	}
	return nil
}

func kernel() (string, bool) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return runtime.GOOS, false
	}
	release := unix.ByteSliceToString(name.Release[:])
	known := runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"
	return release + " " + runtime.GOARCH, known && newEnough(release)
}

func newEnough(release string) bool {
	parts := strings.FieldsFunc(release, func(r rune) bool { return r < '0' || r > '9' })
	if len(parts) < 2 {
		return false
	}
	major, _ := strconv.Atoi(parts[0])
	minor, _ := strconv.Atoi(parts[1])
	return major > 4 || major == 4 && minor >= 15
}

// container tells in which kind of container this process seems to be. A
// marker may be left over in the image of a VM, so it is a hint and no more.
func container() string {
	for file, kind := range map[string]string{"/.dockerenv": "Docker", "/run/.containerenv": "Podman"} {
		if _, err := os.Stat(file); err == nil && !ownsMachine() {
			return kind
		}
	}
	text, err := os.ReadFile("/proc/1/cgroup")
	if err != nil {
		return ""
	}
	return containerOf(string(text))
}

// ownsMachine reports whether the first process is a machine's, and sees
// kernel threads beside it.
func ownsMachine() bool {
	comm, err := os.ReadFile("/proc/2/comm")
	return err == nil && strings.TrimSpace(string(comm)) == "kthreadd"
}

func containerOf(cgroups string) string {
	for _, s := range []struct{ mark, kind string }{
		{"kubepods", "Kubernetes"}, {"/docker", "Docker"}, {"libpod", "Podman"}, {"/lxc", "LXC"},
	} {
		if strings.Contains(cgroups, s.mark) {
			return s.kind
		}
	}
	return ""
}

// osID returns the ID of an os-release file, or the first system that it says
// it is like.
func osID(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	known := "debian ubuntu fedora rhel centos rocky almalinux amzn arch alpine opensuse suse sles"
	var like string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "=")
		value = strings.Trim(value, `"'`)
		switch name {
		case "ID":
			if strings.Contains(" "+known+" ", " "+value+" ") {
				return value
			}
		case "ID_LIKE":
			like, _, _ = strings.Cut(value, " ")
		}
	}
	return like
}
