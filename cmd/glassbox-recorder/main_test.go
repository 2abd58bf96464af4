package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// newBoot is a recorder on this machine, whose host this test is.
func newBoot(t *testing.T) *wire.Boot {
	dir := t.TempDir()
	return &wire.Boot{
		SandboxID: "s-1", InstanceID: "i-1", Token: "a token", Workdir: filepath.Join(dir, "work"),
		HistoryDir: filepath.Join(dir, "history"), Socket: filepath.Join(dir, "recorder.sock"),
	}
}

// host serves a recorder, and returns the session that it dials in for.
func host(t *testing.T, boot *wire.Boot) *recorded.Session {
	t.Helper()
	l, err := net.Listen("unix", boot.Socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, boot, slog.New(slog.DiscardHandler)) }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve ended with %v", err)
		}
		l.Close()
	})
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	return recorded.New("http://recorder", &recorded.Options{Token: boot.Token, Client: &http.Client{Transport: transport}})
}

func TestServe(t *testing.T) {
	boot := newBoot(t)
	boot.Listen = "127.0.0.1:0"
	s := host(t, boot)
	res, err := s.Run(t.Context(), &sandbox.Command{Line: "pwd"})
	if err != nil || strings.TrimSpace(string(res.Stdout)) != boot.Workdir || res.Recording != sandbox.RecordedWhole {
		t.Errorf("got %+v, %v, want the working directory, recorded", res, err)
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "history.sqlite3": 0o600, "recorder.lock": 0o600, wire.DoorFile: 0o600, "tmp": 0o700} {
		if info, err := os.Stat(filepath.Join(boot.HistoryDir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: got %v, %v, want mode %o", name, info, err, want)
		}
	}
	t.Run("plain HTTP", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(boot.HistoryDir, wire.DoorFile))
		if err != nil {
			t.Fatal(err)
		}
		var door wire.Door
		if err := json.Unmarshal(text, &door); err != nil {
			t.Fatal(err)
		}
		plain := recorded.New("http://127.0.0.1:"+strconv.Itoa(door.Port), &recorded.Options{Token: door.Token})
		res, err := plain.Run(t.Context(), &sandbox.Command{Line: "cat", Stdin: strings.NewReader("by the door")})
		if err != nil || string(res.Stdout) != "by the door" {
			t.Errorf("got %+v, %v, want what was put in", res, err)
		}
		if err := plain.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("two recorders at once", func(t *testing.T) {
		err := serve(t.Context(), boot, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "another recorder works in") {
			t.Errorf("got %v, want that another one works there", err)
		}
	})
}

// The configuration comes with the boot file, is read and changed over the
// wire, and holds after a restart.
func TestHistoryConfig(t *testing.T) {
	boot := newBoot(t)
	boot.History = &history.Config{TTLDays: 3, NoStderr: true}
	t.Run("first", func(t *testing.T) {
		s := host(t, boot)
		res, err := s.Run(t.Context(), &sandbox.Command{Line: "echo out; echo err >&2"})
		if err != nil || res.Recording != sandbox.RecordedTruncated {
			t.Errorf("got %+v, %v, want stderr left out", res, err)
		}
		got, err := s.History().Config(t.Context())
		if err != nil || got.Config.TTLDays != 3 || got.Config.NoStdout || !got.Config.NoStderr || got.Revision != 0 || got.UpdatedBy != "glassbox:initialize" {
			t.Errorf("got %+v, %v", got, err)
		}
		change := &history.ConfigChange{Changes: map[string]any{"ttl_days": nil, "capture_stderr": true}, By: "me"}
		if got, err = s.History().SetConfig(t.Context(), change); err != nil || got.Revision != 1 || got.Config.TTLDays >= 0 {
			t.Errorf("got %+v, %v", got, err)
		}
		if _, err := s.History().SetConfig(t.Context(), change); sandbox.CodeOf(err) != sandbox.CodeHistoryConflict {
			t.Errorf("an old revision: got %v", err)
		}
		_, err = s.History().SetConfig(t.Context(), &history.ConfigChange{Changes: map[string]any{"ttl_days": 0}, Expected: 1})
		if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Code != sandbox.CodeHistoryConfig || e.Field != "ttl_days" {
			t.Errorf("a value out of bounds: got %v", err)
		}
	})
	t.Run("again", func(t *testing.T) {
		boot.Socket += "2"
		s := host(t, boot)
		got, err := s.History().Config(t.Context())
		if err != nil || got.Revision != 1 || got.Config.NoStderr || got.UpdatedBy != "me" {
			t.Errorf("got %+v, %v, want what was set", got, err)
		}
		if res, err := s.Run(t.Context(), &sandbox.Command{Line: "echo err >&2"}); err != nil || res.Recording != sandbox.RecordedWhole {
			t.Errorf("got %+v, %v, want stderr kept", res, err)
		}
	})
}

// A history that cannot be opened is told by every operation; the recorder
// stays up, and the file is left as it is.
func TestBrokenHistory(t *testing.T) {
	for _, tt := range []struct {
		name       string
		bestEffort bool
	}{{"strict", false}, {"best effort", true}} {
		t.Run(tt.name, func(t *testing.T) {
			boot := newBoot(t)
			boot.BestEffort = tt.bestEffort
			if err := os.MkdirAll(boot.HistoryDir, 0o700); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(boot.HistoryDir, "history.sqlite3")
			junk := []byte(strings.Repeat("this is no database\n", 500))
			if err := os.WriteFile(file, junk, 0o600); err != nil {
				t.Fatal(err)
			}
			s := host(t, boot)
			res, err := s.Run(t.Context(), &sandbox.Command{Line: "echo ran"})
			if tt.bestEffort {
				if err != nil || string(res.Stdout) != "ran\n" || res.Recording != sandbox.NotRecorded {
					t.Errorf("got %+v, %v, want it run and not recorded", res, err)
				}
			} else if sandbox.CodeOf(err) != sandbox.CodeHistoryCorrupt {
				t.Errorf("got %+v, %v, want that the history is corrupt", res, err)
			}
			if _, err := s.History().List(t.Context(), nil); !errors.Is(err, sandbox.ErrHistory) {
				t.Errorf("list: got %v, want an error of the history", err)
			}
			if now, err := os.ReadFile(file); err != nil || string(now) != string(junk) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
}

func TestReadBoot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "boot.json")
	if _, err := readBoot(file); err == nil {
		t.Error("no file: got no error")
	}
	text, err := json.Marshal(&wire.Boot{SandboxID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	boot, err := readBoot(file)
	if err != nil || boot.Workdir != wire.DefaultWorkdir || boot.HistoryDir != wire.GuestHistory {
		t.Errorf("got %+v, %v, want the defaults", boot, err)
	}
}
