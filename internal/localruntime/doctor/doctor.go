// Package doctor tells what this machine can do for sandboxes, what it lacks,
// and the command that gives it what it lacks.
//
//	for _, check := range doctor.Run(ctx, doctor.Machine(&doctor.Options{Runsc: path})) { … }
//
// What it asks of the machine is a struct of functions, so that its words can
// be tested for machines that are not at hand.
package doctor

import (
	"context"
	"errors"
	"fmt"
)

// Severity tells what it means that a check is not OK.
type Severity string

// The severities.
const (
	Required Severity = "required" // no isolated sandbox without it
	Advised  Severity = "advised"  // sandboxes work, something is missing in them
	Noted    Severity = "noted"    // worth knowing, changes nothing
)

// Check is one thing that was looked at.
type Check struct {
	Name     string   `json:"name"`
	OK       bool     `json:"ok"`
	Severity Severity `json:"severity"`
	Text     string   `json:"text"`          // what was found, and what follows from it
	Fix      string   `json:"fix,omitempty"` // what to type or to do
}

// Probes ask the machine.
type Probes struct {
	EUID      func() int
	OS        func() string
	Kernel    func() (release string, ok bool)
	Container func() string // kind of container this is in; empty: none
	Runsc     func(ctx context.Context) (version string, err error)
	Recorder  func(ctx context.Context) (version string, err error)
	Python    func(ctx context.Context) (version string, venv bool, err error)
	// Mount tries to make a mount namespace, for an ordinary user in a user
	// namespace.
	Mount func(ctx context.Context) error
	// Setting returns what keeps ordinary users from user namespaces, if that is
	// a setting.
	Setting func() *Setting
	Limits  func(ctx context.Context) error
	Disk    func() (free uint64, err error)
	// Start starts a sandbox, runs a command in it, and ends it.
	Start func(ctx context.Context) error
}

// Setting is one of the kernel that is in the way.
type Setting struct {
	Name  string // as sysctl knows it
	Value string // what it is
	Want  string // what lets sandboxes start
}

// minDisk is what the writable layers and histories of a few sandboxes take.
const minDisk = 2 << 30

// Run asks everything, and tries a start only where it has a chance.
func Run(ctx context.Context, p *Probes) []Check {
	checks := []Check{
		p.user(), p.kernel(), p.container(), p.mount(ctx), p.runsc(ctx), p.recorder(ctx), p.limits(ctx), p.python(ctx), p.disk(),
	}
	for _, c := range checks {
		if !c.OK && c.Severity == Required {
			return append(checks, Check{
				Name: "start", Severity: Required,
				Text: "no sandbox was started, for what is said of " + c.Name + " above",
				Fix:  c.Fix,
			})
		}
	}
	return append(checks, p.start(ctx))
}

// Isolated reports whether sandboxes can be isolated on this machine.
func Isolated(checks []Check) bool {
	for _, c := range checks {
		if !c.OK && c.Severity == Required {
			return false
		}
	}
	return true
}

func (p *Probes) user() Check {
	c := Check{Name: "user", OK: true, Severity: Required, Text: "root"}
	if p.EUID() != 0 {
		c.Text = "an ordinary user; sandboxes run in user namespaces, and who is root in them is this user outside"
	}
	return c
}

func (p *Probes) kernel() Check {
	release, ok := p.Kernel()
	c := Check{Name: "kernel", OK: ok, Severity: Required, Text: "Linux " + release}
	if !ok {
		c.Text = fmt.Sprintf("%s is not Linux 4.15 or newer on amd64 or arm64, which gVisor needs", release)
		c.Fix = "use a Linux machine, or a Linux VM on this one"
	}
	return c
}

func (p *Probes) container() Check {
	c := Check{Name: "container", OK: true, Severity: Noted, Text: "this machine is no container"}
	if kind := p.Container(); kind != "" {
		c.OK = false
		c.Text = "this looks like a " + kind + " container; gVisor usually cannot start in one, because it may make no namespaces there"
		c.Fix = "run glassbox on the machine that runs the container; if the container is your boundary, glassbox run --here"
	}
	return c
}

func (p *Probes) mount(ctx context.Context) Check {
	ordinary := p.EUID() != 0
	c := Check{Name: "mount", OK: true, Severity: Required, Text: "mount namespaces can be made"}
	if ordinary {
		c.Text = "user namespaces can be made, and mount namespaces in them"
	}
	err := p.Mount(ctx)
	if err == nil {
		return c
	}
	c.OK = false
	c.Text = fmt.Sprintf("no mount namespace can be made (%v): CAP_SYS_ADMIN is missing", err)
	c.Fix = "run as root outside a container, or give the container --privileged"
	if !ordinary {
		return c
	}
	c.Text = fmt.Sprintf("this user may make no user namespace to mount in (%v)", err)
	c.Fix = "run as root outside a container"
	if s := p.Setting(); s != nil {
		c.Text = fmt.Sprintf("%s, for %s is %s", c.Text, s.Name, s.Value)
		c.Fix = fmt.Sprintf("sudo sysctl -w %s=%s, or run as root", s.Name, s.Want)
	}
	return c
}

func (p *Probes) runsc(ctx context.Context) Check {
	version, err := p.Runsc(ctx)
	c := Check{Name: "runsc", OK: err == nil, Severity: Required, Text: version}
	if err != nil {
		c.Text = notStarted("gVisor's runsc", err)
		c.Fix = "make build"
	}
	return c
}

func (p *Probes) recorder(ctx context.Context) Check {
	version, err := p.Recorder(ctx)
	c := Check{Name: "recorder", OK: err == nil, Severity: Required, Text: version}
	if err != nil {
		c.Text = notStarted("the recorder's binary", err)
		c.Fix = "make build"
	}
	return c
}

// ErrNotFound says that there is no such program to start.
var ErrNotFound = errors.New("not found")

func notStarted(what string, err error) string {
	if errors.Is(err, ErrNotFound) {
		return what + " was not found"
	}
	return fmt.Sprintf("%s does not start (%v)", what, err)
}

func (p *Probes) limits(ctx context.Context) Check {
	c := Check{Name: "limits", OK: true, Severity: Advised, Text: "limits of memory, CPU and processes are held by control groups"}
	if err := p.Limits(ctx); err != nil {
		c.OK = false
		c.Text = fmt.Sprintf("%v; a sandbox can use up what this machine has of it", err)
		c.Fix = "run as root on a system that mounts /sys/fs/cgroup with the controllers memory, cpu and pids"
		if p.EUID() != 0 {
			c.Fix = "run as root, or start glassbox with systemd-run --user --scope where systemd gives users control groups of version 2"
		}
	}
	return c
}

func (p *Probes) python(ctx context.Context) Check {
	version, venv, err := p.Python(ctx)
	c := Check{Name: "python3", OK: err == nil && venv, Severity: Advised, Text: version + " with venv and ensurepip"}
	switch {
	case err != nil:
		c.Text = fmt.Sprintf("there is no python3 under /usr (%v), so there is none in sandboxes of the image host", err)
		c.Fix = p.install("python3 python3-venv", "python3")
	case !venv:
		c.Text = version + " has no venv or no ensurepip, so pip install does not work in sandboxes"
		c.Fix = p.install("python3-venv", "python3-pip")
	}
	return c
}

// install returns the command that installs packages on this system.
func (p *Probes) install(debian, other string) string {
	switch p.OS() {
	case "debian", "ubuntu":
		return "apt-get install " + debian
	case "fedora", "rhel", "centos", "rocky", "almalinux", "amzn":
		return "dnf install " + other
	case "arch":
		return "pacman -S python"
	case "alpine":
		return "apk add python3 py3-pip"
	case "opensuse", "suse", "sles":
		return "zypper install " + other
	}
	return "install " + other + " with this system's package manager"
}

func (p *Probes) disk() Check {
	free, err := p.Disk()
	c := Check{Name: "disk", OK: err == nil && free >= minDisk, Severity: Advised}
	switch {
	case err != nil:
		c.Text = fmt.Sprintf("the free space of the state folder is not known (%v)", err)
	case !c.OK:
		c.Text = fmt.Sprintf("%d MiB are free in the state folder; a sandbox can write 4 GiB", free>>20)
		c.Fix = "free some space, or give another folder with --state-dir"
	default:
		c.Text = fmt.Sprintf("%d GiB are free in the state folder", free>>30)
	}
	return c
}

func (p *Probes) start(ctx context.Context) Check {
	c := Check{Name: "start", OK: true, Severity: Required, Text: "a sandbox was started, asked, and ended"}
	if err := p.Start(ctx); err != nil {
		c.OK = false
		c.Text = fmt.Sprintf("a sandbox does not start here: %v", err)
		c.Fix = "see the checks above; if this machine is itself the boundary, glassbox run --here runs without isolation"
	}
	return c
}
