package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/version"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// program builds the recorder once.
var program = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "glassbox-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "glassbox-recorder")
	cmd := exec.Command("go", "build", "-o", name, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return out, err
	}
	return os.ReadFile(name)
})

// folder is one that recorders are installed into; they end with the test.
type folder struct {
	dir  string
	boot *wire.Boot
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	dir := filepath.Join(t.TempDir(), ".agent-history")
	f := &folder{dir: dir, boot: &wire.Boot{
		SandboxID: "s-1", HistoryDir: dir, Workdir: filepath.Join(t.TempDir(), "work"), InheritEnv: true, Listen: "127.0.0.1:0",
	}}
	t.Cleanup(func() {
		if err := endInstalled(context.Background(), dir); err != nil {
			t.Error(err)
		}
	})
	return f
}

// bring does what an SDK does: it uploads under a name of its own, and lets
// the program install itself.
func (f *folder) bring(t *testing.T, name, hash string) (said string, err error) {
	t.Helper()
	text, err := program()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, text)
	}
	if hash == "" {
		sum := sha256.Sum256(text)
		hash = hex.EncodeToString(sum[:])
	}
	boot, err := json.Marshal(f.boot)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(f.dir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(bin, name)
	if err := os.WriteFile(file, text, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".json", boot, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file, "install", "--boot", file+".json", "--sha256", hash)
	cmd.Env = append(os.Environ(), "INHERITED=yes", envExecdToken+"=secret")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (f *folder) mustBring(t *testing.T, name string) *wire.Door {
	t.Helper()
	if said, err := f.bring(t, name, ""); err != nil {
		t.Fatalf("install: %v: %s", err, said)
	}
	door, err := readDoor(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	return door
}

func sessionAt(t *testing.T, door *wire.Door) *recorded.Session {
	t.Helper()
	s := recorded.New("http://127.0.0.1:"+strconv.Itoa(door.Port), &recorded.Options{Token: door.Token})
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func TestInstall(t *testing.T) {
	f := newFolder(t)
	door := f.mustBring(t, ".first")
	s := sessionAt(t, door)
	res, err := s.Run(t.Context(), &sandbox.Command{Line: `echo "$INHERITED,$` + envExecdToken + `"; pwd`})
	if err != nil || string(res.Stdout) != "yes,\n"+f.boot.Workdir+"\n" || res.Recording != sandbox.RecordedWhole {
		t.Errorf("got %+v, %v, want the sandbox's environment without execd's token", res, err)
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "boot.json": 0o600, wire.DoorFile: 0o600, "recorder.log": 0o600, "bin/glassbox-recorder": 0o700} {
		if info, err := os.Stat(filepath.Join(f.dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: got %v, %v, want mode %o", name, info, err, want)
		}
	}
	t.Run("again", func(t *testing.T) {
		if again := f.mustBring(t, ".second"); *again != *door {
			t.Errorf("got %+v, want the recorder that was there, %+v", again, door)
		}
	})
	t.Run("nothing is left", func(t *testing.T) {
		if left, err := os.ReadDir(filepath.Join(f.dir, "bin")); err != nil || len(left) != 1 {
			t.Errorf("got %v, %v, want the recorder alone", left, err)
		}
	})
	t.Run("died", func(t *testing.T) {
		pids := installed(f.dir)
		if len(pids) != 2 {
			t.Fatalf("got processes %v, want init and the recorder", pids)
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		again := f.mustBring(t, ".third")
		if again.PID == door.PID || again.Token != door.Token {
			t.Errorf("got %+v, want another one with the token of %+v", again, door)
		}
		page, err := sessionAt(t, again).History().List(t.Context(), &history.Filter{Types: []string{history.RecorderRestart}})
		if err != nil || len(page.Operations) != 1 {
			t.Errorf("got %+v, %v, want the restart told", page, err)
		}
	})
	t.Run("damaged", func(t *testing.T) {
		said, err := f.bring(t, ".fourth", strings.Repeat("0", 64))
		if err == nil || !strings.Contains(said, "came damaged") {
			t.Errorf("got %v: %s", err, said)
		}
	})
	t.Run("uninstall", func(t *testing.T) {
		if err := uninstall(t.Context(), f.dir, true); err != nil {
			t.Fatal(err)
		}
		left, err := filepath.Glob(filepath.Join(f.dir, "*"))
		if err != nil || len(installed(f.dir)) != 0 {
			t.Errorf("got %v, %v", left, err)
		}
		for _, name := range left {
			if !strings.Contains(name, ".sqlite3") {
				t.Errorf("%s is left", name)
			}
		}
		if err := uninstall(t.Context(), f.dir, false); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(f.dir); err == nil {
			t.Error("the folder is left")
		}
	})
}

// However many come at once, there is one recorder, and all find it.
// A sandbox that was made from another's files begins a history of its own, and
// has a token of its own.
func TestInstallIntoCopy(t *testing.T) {
	f := newFolder(t)
	was := f.mustBring(t, "first")
	s := sessionAt(t, was)
	if _, err := s.Run(t.Context(), &sandbox.Command{Line: "echo of the first"}); err != nil {
		t.Fatal(err)
	}
	if err := endInstalled(t.Context(), f.dir); err != nil {
		t.Fatal(err)
	}
	f.boot.SandboxID = "s-2"
	is := f.mustBring(t, "second")
	if is.Token == was.Token {
		t.Error("the copy has the token of its source")
	}
	s = sessionAt(t, is)
	if _, err := s.Run(t.Context(), &sandbox.Command{Line: "echo of the second"}); err != nil {
		t.Fatal(err)
	}
	page, err := s.History().List(t.Context(), &history.Filter{Types: []string{history.CommandExecute}})
	if err != nil || len(page.Operations) != 1 || page.Operations[0].Command.Line != "echo of the second" {
		t.Errorf("got %+v, %v, want its own command", page, err)
	}
	if _, err := os.Stat(filepath.Join(f.dir, "history-of-s-1.sqlite3")); err != nil {
		t.Errorf("what was recorded in the first is not kept: %v", err)
	}
}

func TestInstallRace(t *testing.T) {
	f := newFolder(t)
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			if said, err := f.bring(t, ".racer-"+strconv.Itoa(i), ""); err != nil {
				t.Errorf("racer %d: %v: %s", i, err, said)
			}
		})
	}
	group.Wait()
	if pids := installed(f.dir); len(pids) != 2 {
		t.Errorf("got processes %v, want init and one recorder", pids)
	}
	door, err := readDoor(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := askDoor(t.Context(), door); err != nil {
		t.Error(err)
	}
}

// An older recorder is replaced, unless it works.
func TestKeep(t *testing.T) {
	for _, tt := range []struct {
		name string
		info wire.Info
		want bool
	}{
		{"same", wire.Info{Protocol: wire.Protocol, Version: version.String()}, true},
		{"newer", wire.Info{Protocol: wire.Protocol + 1, Version: "99.0.0"}, true},
		{"older", wire.Info{Protocol: wire.Protocol, Version: "0.0.1"}, false},
		{"older, working", wire.Info{Protocol: wire.Protocol, Version: "0.0.1", Running: 1}, true},
		{"older protocol", wire.Info{Protocol: wire.Protocol - 1, Version: version.String()}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(wire.HeaderToken) != "t" {
					w.WriteHeader(http.StatusUnauthorized)
				}
				_ = json.NewEncoder(w).Encode(tt.info)
			}))
			defer srv.Close()
			writeDoor(t, dir, &wire.Door{Port: srv.Listener.Addr().(*net.TCPAddr).Port, Token: "t"})
			if got := keep(t.Context(), dir); got != tt.want {
				t.Errorf("got %v", got)
			}
			writeDoor(t, dir, &wire.Door{Port: srv.Listener.Addr().(*net.TCPAddr).Port, Token: "another"})
			if keep(t.Context(), dir) {
				t.Error("one that does not know its token is kept")
			}
		})
	}
	t.Run("dead", func(t *testing.T) {
		dir := t.TempDir()
		writeDoor(t, dir, &wire.Door{Port: 1, Token: "t"})
		if began := time.Now(); keep(t.Context(), dir) || time.Since(began) > askWithin {
			t.Error("one that is not there is kept, or waited for")
		}
	})
}

func writeDoor(t *testing.T, dir string, door *wire.Door) {
	t.Helper()
	text, err := json.Marshal(door)
	if err == nil {
		err = replaceFile(filepath.Join(dir, wire.DoorFile), text)
	}
	if err != nil {
		t.Fatal(err)
	}
}
