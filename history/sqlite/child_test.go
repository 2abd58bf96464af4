package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/glassboxhq/glassbox/history/sqlite"
)

// childEnv names what this binary does when it is started as a child.
const childEnv = "GLASSBOX_TEST_CHILD"

// children are the second processes of tests. Each writes a line when it is
// ready, and ends when its stdin does.
func children() map[string]func(path string) error {
	return map[string]func(string) error{"lock": childLock, "open": childOpen, "record": childRecord, "show": childShow}
}

func TestMain(m *testing.M) {
	if child := children()[os.Getenv(childEnv)]; child != nil {
		if err := child(os.Args[1]); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is a child of a test.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

// startChild starts a child and returns when it has written its first line.
func startChild(t *testing.T, name, path string, env ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], path)}
	p.cmd.Env = append(append(os.Environ(), childEnv+"="+name), env...)
	p.cmd.Stderr = os.Stderr
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(stdout)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !p.lines.Scan() {
		t.Fatalf("child %s: %v", name, p.cmd.Wait())
	}
	return p
}

// end ends the child in peace.
func (p *process) end(t *testing.T) {
	t.Helper()
	p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("child: %v", err)
	}
}

// childLock holds the write lock until its stdin ends.
func childLock(path string) error {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(context.Background(), `begin immediate`); err != nil {
		return err
	}
	os.Stdout.WriteString("locked\n")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// childOpen records one operation in a file that others make at the same time.
func childOpen(path string) error {
	os.Stdout.WriteString("ready\n")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	s, err := sqlite.Open(path, &sqlite.Options{SandboxID: "shared"})
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Begin(context.Background(), benchOperation())
}
