// Package usertest runs tests of a package once more as an ordinary user: what
// works as root has to work without.
//
//	func TestOrdinaryUser(t *testing.T) {
//		usertest.Run(t, &usertest.Options{Tests: []string{"TestLife"}, Programs: map[string]string{"GLASSBOX_RUNSC": runsc}})
//	}
package usertest

import (
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Nobody is the user that has no rights of its own on any Linux.
const Nobody = 65534

// Options say what is run, and with what.
type Options struct {
	// Tests are the names of tests of the package that calls.
	Tests []string
	// Programs are files that the tests start, by the environment variables
	// that name them. The user gets copies: the originals may lie where only
	// root may look.
	Programs map[string]string
	// Env is added to the environment of the tests.
	Env []string
	// Folder is copied to where the tests run, under its own name; empty: none.
	Folder string
}

// Run runs each test as a subtest, in a process of its own. A test that is not
// run there is not run here, and says why.
func Run(t *testing.T, opts *Options) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this user is an ordinary one: the tests have run as they are")
	}
	u := newUser(t, opts)
	u.needNamespaces(t)
	for _, name := range opts.Tests {
		t.Run(name, func(t *testing.T) { u.run(t, name) })
	}
}

type user struct {
	home, test string
	env        []string
}

func newUser(t *testing.T, opts *Options) *user {
	t.Helper()
	dir, err := os.MkdirTemp("", "glassbox-user-") //nolint:usetesting // that one is for root only
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	check(t, os.Chmod(dir, 0o755))
	u := &user{home: filepath.Join(dir, "home")}
	for _, name := range []string{u.home, filepath.Join(u.home, "tmp")} {
		check(t, os.Mkdir(name, 0o700))
		check(t, os.Chown(name, Nobody, Nobody))
	}
	self, err := os.Executable()
	check(t, err)
	u.test = give(t, dir, self)
	u.env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "USER=nobody",
		"HOME=" + u.home, "TMPDIR=" + filepath.Join(u.home, "tmp"), "CI=" + os.Getenv("CI"),
	}
	for _, variable := range slices.Sorted(maps.Keys(opts.Programs)) {
		u.env = append(u.env, variable+"="+give(t, dir, opts.Programs[variable]))
	}
	u.env = append(u.env, opts.Env...)
	if opts.Folder != "" {
		check(t, os.CopyFS(filepath.Join(u.home, opts.Folder), os.DirFS(opts.Folder)))
	}
	return u
}

// give copies a program to where the user may start it.
func give(t *testing.T, dir, program string) string {
	t.Helper()
	in, err := os.Open(program)
	check(t, err)
	defer in.Close()
	to := filepath.Join(dir, filepath.Base(program))
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755) //nolint:gosec // others start it
	check(t, err)
	_, err = io.Copy(out, in)
	check(t, err)
	check(t, out.Close())
	return to
}

// needNamespaces ends the test where the user may make no user namespaces: as
// failed in CI, as not run elsewhere.
func (u *user) needNamespaces(t *testing.T) {
	t.Helper()
	out, err := u.command(t, "unshare", "--user", "--map-root-user", "--mount", "true").CombinedOutput()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("CI must let ordinary users make user namespaces; glassbox doctor tells the setting: %v %s", err, out)
	default:
		t.Skipf("needs user namespaces for ordinary users: %v %s", err, out)
	}
}

// command is a program that the user runs.
func (u *user) command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = u.home, u.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: Nobody, Gid: Nobody}}
	cmd.WaitDelay = 5 * time.Second // what it has started may hold its output
	return cmd
}

var reason = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: (.*)$`)

func (u *user) run(t *testing.T, name string) {
	t.Helper()
	out, err := u.command(t, u.test, "-test.v", "-test.count=1", "-test.timeout=2m", "-test.run=^"+name+"$").CombinedOutput()
	text := string(out)
	switch {
	case err == nil && strings.Contains(text, "\n--- PASS: "+name):
	case err == nil && strings.Contains(text, "\n--- SKIP: "+name):
		why := "it does not say why"
		if all := reason.FindAllStringSubmatch(text, -1); len(all) > 0 {
			why = all[len(all)-1][1]
		}
		t.Skip(why)
	default:
		t.Errorf("as an ordinary user: %v\n%s", err, text)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
