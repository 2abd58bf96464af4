package doctor_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/internal/localruntime/doctor"
)

// healthy is a machine that has everything.
func healthy() *doctor.Probes {
	return &doctor.Probes{
		EUID:      func() int { return 0 },
		Setting:   func() *doctor.Setting { return nil },
		OS:        func() string { return "debian" },
		Kernel:    func() (string, bool) { return "6.1.0 amd64", true },
		Container: func() string { return "" },
		Runsc:     func(context.Context) (string, error) { return "runsc version 1", nil },
		Recorder:  func(context.Context) (string, error) { return "glassbox-recorder 1", nil },
		Python:    func(context.Context) (string, bool, error) { return "Python 3.11.2", true, nil },
		Mount:     func(context.Context) error { return nil },
		Limits:    func(context.Context) error { return nil },
		Disk:      func() (uint64, error) { return 100 << 30, nil },
		Start:     func(context.Context) error { return nil },
	}
}

func TestHealthy(t *testing.T) {
	checks := doctor.Run(t.Context(), healthy())
	for _, c := range checks {
		if !c.OK || c.Fix != "" || c.Text == "" {
			t.Errorf("%+v", c)
		}
	}
	if !doctor.Isolated(checks) || checks[len(checks)-1].Name != "start" {
		t.Errorf("%+v", checks)
	}
}

func TestSick(t *testing.T) {
	bad := errors.New("EPERM")
	for _, tt := range []struct {
		name     string
		hurt     func(p *doctor.Probes)
		want     doctor.Check
		isolated bool
	}{
		{
			"ordinary user without control groups", func(p *doctor.Probes) {
				p.EUID = func() int { return 1000 }
				p.Limits = func(context.Context) error { return errors.New("the memory limit is not held: EACCES") }
			},
			doctor.Check{
				Name: "limits", Severity: doctor.Advised,
				Text: "the memory limit is not held: EACCES; a sandbox can use up what this machine has of it",
				Fix:  "run as root, or start glassbox with systemd-run --user --scope where systemd gives users control groups of version 2",
			},
			true,
		},
		{
			"ordinary user without user namespaces", func(p *doctor.Probes) {
				p.EUID = func() int { return 1000 }
				p.Mount = func(context.Context) error { return bad }
			},
			doctor.Check{
				Name: "mount", Severity: doctor.Required, Fix: "run as root outside a container",
				Text: "this user may make no user namespace to mount in (EPERM)",
			},
			false,
		},
		{
			"ordinary user, setting", func(p *doctor.Probes) {
				p.EUID = func() int { return 1000 }
				p.Mount = func(context.Context) error { return bad }
				p.Setting = func() *doctor.Setting {
					return &doctor.Setting{Name: "kernel.apparmor_restrict_unprivileged_userns", Value: "1", Want: "0"}
				}
			},
			doctor.Check{
				Name: "mount", Severity: doctor.Required, Fix: "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or run as root",
				Text: "this user may make no user namespace to mount in (EPERM), for kernel.apparmor_restrict_unprivileged_userns is 1",
			},
			false,
		},
		{
			"no Python on Debian", func(p *doctor.Probes) {
				p.Python = func(context.Context) (string, bool, error) { return "", false, os.ErrNotExist }
			},
			doctor.Check{
				Name: "python3", Severity: doctor.Advised, Fix: "apt-get install python3 python3-venv",
				Text: "there is no python3 under /usr (file does not exist), so there is none in sandboxes of the image host",
			},
			true,
		},
		{
			"no venv on Debian", func(p *doctor.Probes) {
				p.Python = func(context.Context) (string, bool, error) { return "Python 3.11.2", false, nil }
			},
			doctor.Check{
				Name: "python3", Severity: doctor.Advised, Fix: "apt-get install python3-venv",
				Text: "Python 3.11.2 has no venv or no ensurepip, so pip install does not work in sandboxes",
			},
			true,
		},
		{
			"no Python on Fedora", func(p *doctor.Probes) {
				p.OS = func() string { return "fedora" }
				p.Python = func(context.Context) (string, bool, error) { return "", false, os.ErrNotExist }
			},
			doctor.Check{
				Name: "python3", Severity: doctor.Advised, Fix: "dnf install python3",
				Text: "there is no python3 under /usr (file does not exist), so there is none in sandboxes of the image host",
			},
			true,
		},
		{
			"container", func(p *doctor.Probes) {
				p.Container = func() string { return "Docker" }
				p.Start = func(context.Context) error { return bad }
			},
			doctor.Check{
				Name: "container", Severity: doctor.Noted,
				Text: "this looks like a Docker container; gVisor usually cannot start in one, because it may make no namespaces there",
				Fix:  "run glassbox on the machine that runs the container; if the container is your boundary, glassbox run --here",
			},
			false,
		},
		{
			"no mount namespace", func(p *doctor.Probes) { p.Mount = func(context.Context) error { return bad } },
			doctor.Check{
				Name: "mount", Severity: doctor.Required, Fix: "run as root outside a container, or give the container --privileged",
				Text: "no mount namespace can be made (EPERM): CAP_SYS_ADMIN is missing",
			},
			false,
		},
		{
			"no runsc", func(p *doctor.Probes) {
				p.Runsc = func(context.Context) (string, error) { return "", doctor.ErrNotFound }
			},
			doctor.Check{Name: "runsc", Severity: doctor.Required, Fix: "make build", Text: "gVisor's runsc was not found"},
			false,
		},
		{
			"no recorder", func(p *doctor.Probes) {
				p.Recorder = func(context.Context) (string, error) { return "", bad }
			},
			doctor.Check{Name: "recorder", Severity: doctor.Required, Fix: "make build", Text: "the recorder's binary does not start (EPERM)"},
			false,
		},
		{
			"no control groups", func(p *doctor.Probes) {
				p.Limits = func(context.Context) error { return errors.New("the memory limit is not held: EPERM") }
			},
			doctor.Check{
				Name: "limits", Severity: doctor.Advised, Fix: "run as root on a system that mounts /sys/fs/cgroup with the controllers memory, cpu and pids",
				Text: "the memory limit is not held: EPERM; a sandbox can use up what this machine has of it",
			},
			true,
		},
		{
			"full disk", func(p *doctor.Probes) { p.Disk = func() (uint64, error) { return 300 << 20, nil } },
			doctor.Check{
				Name: "disk", Severity: doctor.Advised, Fix: "free some space, or give another folder with --state-dir",
				Text: "300 MiB are free in the state folder; a sandbox can write 4 GiB",
			},
			true,
		},
		{
			"old kernel", func(p *doctor.Probes) { p.Kernel = func() (string, bool) { return "3.10.0 amd64", false } },
			doctor.Check{
				Name: "kernel", Severity: doctor.Required, Fix: "use a Linux machine, or a Linux VM on this one",
				Text: "3.10.0 amd64 is not Linux 4.15 or newer on amd64 or arm64, which gVisor needs",
			},
			false,
		},
		{
			"does not start", func(p *doctor.Probes) { p.Start = func(context.Context) error { return bad } },
			doctor.Check{
				Name: "start", Severity: doctor.Required, Text: "a sandbox does not start here: EPERM",
				Fix: "see the checks above; if this machine is itself the boundary, glassbox run --here runs without isolation",
			},
			false,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := healthy()
			tt.hurt(p)
			if tt.want.Severity == doctor.Required && tt.want.Name != "start" {
				p.Start = func(context.Context) error { t.Error("a start was tried"); return nil }
			}
			checks := doctor.Run(t.Context(), p)
			var got doctor.Check
			for _, c := range checks {
				if c.Name == tt.want.Name {
					got = c
				}
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Error(diff)
			}
			if doctor.Isolated(checks) != tt.isolated {
				t.Errorf("isolated is %v", !tt.isolated)
			}
		})
	}
}

func TestOrdinaryUser(t *testing.T) {
	p := healthy()
	p.EUID = func() int { return 1000 }
	checks := doctor.Run(t.Context(), p)
	for _, c := range checks {
		if !c.OK || c.Fix != "" {
			t.Errorf("%+v", c)
		}
	}
	want := "an ordinary user; sandboxes run in user namespaces, and who is root in them is this user outside"
	if checks[0].Name != "user" || checks[0].Text != want {
		t.Errorf("%+v", checks[0])
	}
}

// TestMachine asks this machine; what it has is not known, that it answers is.
func TestMachine(t *testing.T) {
	checks := doctor.Run(t.Context(), doctor.Machine(&doctor.Options{
		StateDir: t.TempDir() + "/not/there/yet", Start: func(context.Context) error { return nil },
	}))
	for _, c := range checks {
		t.Logf("%+v", c)
		if c.Text == "" || !c.OK && c.Fix == "" {
			t.Errorf("%+v", c)
		}
		if c.Name == "disk" && strings.Contains(c.Text, "not known") {
			t.Error(c.Text)
		}
	}
}
