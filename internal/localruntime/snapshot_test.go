package localruntime_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/sandbox"
)

// settled waits for the end of the taking of a snapshot.
func settled(t testing.TB, rt *localruntime.Runtime, s *sandbox.Snapshot) *sandbox.Snapshot {
	t.Helper()
	eventually(t, "the snapshot is taken", func() bool {
		var err error
		s, err = rt.GetSnapshot(t.Context(), s.ID)
		if err != nil {
			t.Fatal(err)
		}
		return s.State != sandbox.SnapshotCreating
	})
	return s
}

// take takes a snapshot that must become Ready.
func take(t testing.TB, rt *localruntime.Runtime, box string) *sandbox.Snapshot {
	t.Helper()
	s, err := rt.TakeSnapshot(t.Context(), box, "")
	if err != nil {
		t.Fatal(err)
	}
	if s = settled(t, rt, s); s.State != sandbox.SnapshotReady {
		t.Fatalf("snapshot: %+v", s)
	}
	return s
}

// everyKind makes a file of every kind, and look shows them.
const (
	everyKind = `set -e; umask 022; cd /workspace
echo hello > plain; chmod 640 plain; chown 1000:1001 plain; touch -d 2020-01-02T03:04:05Z plain
ln plain hard; ln -s plain soft; mkfifo pipe; mkdir -p 'a b/研究'; echo deep > 'a b/研究/x'
truncate -s 20G holes; printf end | dd of=holes bs=1 seek=10G conv=notrunc 2>/dev/null
head -c 30M /dev/urandom > big; python3 -c 'import os; os.setxattr("plain", "user.note", b"kept")'
echo x > /.agent-history/files; rm /usr/bin/base64; echo changed > /etc/motd; mkdir /srv/new
(while :; do echo line >> log; done) >/dev/null 2>&1 &
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("/tmp/sock")'`
	look = `cd /workspace; stat -c '%n %F %a %u:%g %s' plain hard pipe; stat -c %Y plain; readlink soft; cat plain 'a b/研究/x' /etc/motd
stat -c '%h %i' plain hard | uniq | wc -l; stat -c %s holes; tail -c +10737418241 holes | head -c 3; echo
python3 -c 'import os; print(os.getxattr("plain", "user.note"))'; sha256sum big; ls -d /srv/new; ls /usr/bin/base64 2>/dev/null; grep -rl s3cret-value /run /etc /tmp /workspace/plain /opt/glassbox 2>/dev/null; echo "$SECRET"`
)

func TestSnapshot(t *testing.T) {
	state := t.TempDir()
	rt := startRuntime(t, options(t, state))
	source := create(t, rt, &sandbox.Spec{
		Env: map[string]string{"SECRET": "s3cret-value"}, Metadata: map[string]string{"team": "a"}, Limits: map[string]string{"disk": "5Gi"},
	})
	if out := run(t, rt, source.ID, everyKind); out.code != 0 {
		t.Fatalf("%+v", out)
	}
	want := run(t, rt, source.ID, look).stdout
	want = strings.Replace(want, "/run/glassbox/boot.json\ns3cret-value\n", "\n", 1) // a new sandbox has no environment of another
	s, err := rt.TakeSnapshot(t.Context(), source.ID, "研究 1")
	if err != nil || s.State != sandbox.SnapshotCreating || s.Sandbox != source.ID || s.Name != "研究 1" || !id.Valid(s.ID) {
		t.Fatalf("%v %+v", err, s)
	}
	begin := time.Now()
	s = settled(t, rt, s)
	t.Logf("taken after %v: %d bytes", time.Since(begin), s.Size)
	if s.State != sandbox.SnapshotReady || s.Size < 30<<20 || s.Size > 200<<20 || !s.ChangedAt.After(s.CreatedAt) {
		t.Errorf("%+v", s)
	}
	if out := run(t, rt, source.ID, "cd /workspace; a=$(wc -c < log); sleep 0.1; [ $(wc -c < log) -gt $a ] && rm plain; ls hard"); out.stdout != "hard\n" || out.code != 0 {
		t.Errorf("the source does not go on: %+v", out)
	}
	if err := rt.Delete(t.Context(), source.ID); err != nil {
		t.Fatal(err)
	}
	list, err := rt.ListSnapshots(t.Context(), source.ID)
	if err != nil || cmp.Diff(list, []*sandbox.Snapshot{s}) != "" {
		t.Errorf("list: %v %+v", err, list)
	}
	if list, err := rt.ListSnapshots(t.Context(), "other"); err != nil || len(list) != 0 {
		t.Errorf("list of another sandbox: %v %+v", err, list)
	}
	first := create(t, rt, &sandbox.Spec{Snapshot: s.ID})
	if first.ID == source.ID || first.InstanceID == source.InstanceID || first.Snapshot != s.ID || first.Image != "host" || len(first.Metadata) > 0 {
		t.Errorf("the new one: %+v", first)
	}
	// gVisor has the files open, and reads them when they are needed.
	if err := rt.DeleteSnapshot(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(run(t, rt, first.ID, look).stdout, want); diff != "" {
		t.Errorf("in the new one: %s", diff)
	}
	// A socket has no content, processes and the history stay where they were.
	const nothing = `ls /tmp/sock 2>/dev/null; ls /.agent-history/files 2>/dev/null; a=$(wc -c < /workspace/log); [ $a -gt 0 ] && sleep 0.2; [ $a = $(wc -c < /workspace/log) ]`
	if out := run(t, rt, first.ID, nothing); out.stdout != "" || out.code != 0 {
		t.Errorf("what was not to come: %+v", out)
	}
	if left, err := filepath.Glob(filepath.Join(state, "snapshots", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	if _, err := rt.Create(t.Context(), &sandbox.Spec{Snapshot: s.ID}); sandbox.CodeOf(err) != sandbox.CodeSnapshotNotFound {
		t.Errorf("create from a deleted one: %v", err)
	}
	if err := rt.DeleteSnapshot(t.Context(), s.ID); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("delete twice: %v", err)
	}
}

// A snapshot of a paused sandbox is taken while it stays paused, and one of a
// sandbox that came from a snapshot holds both.
func TestSnapshotOfPaused(t *testing.T) {
	opts := options(t, t.TempDir())
	opts.ImageAliases = map[string]string{"python:3.12": "host"}
	rt := startRuntime(t, opts)
	box := create(t, rt, &sandbox.Spec{Workdir: "/data", Image: "python:3.12"}).ID
	run(t, rt, box, "echo one > one")
	if _, err := rt.Pause(t.Context(), box); err != nil {
		t.Fatal(err)
	}
	s := take(t, rt, box)
	if info, err := rt.Get(t.Context(), box); err != nil || info.State != sandbox.Paused {
		t.Errorf("%v %+v", err, info)
	}
	if _, err := rt.Resume(t.Context(), box); err != nil {
		t.Error(err)
	}
	delete(opts.ImageAliases, "python:3.12") // what it was made from is known without
	second := create(t, rt, &sandbox.Spec{Snapshot: s.ID}).ID
	if out := run(t, rt, second, "pwd; cat one; echo two > two"); out.stdout != "/data\none\n" {
		t.Errorf("%+v", out)
	}
	third := create(t, rt, &sandbox.Spec{Snapshot: take(t, rt, second).ID, Workdir: "/tmp"}).ID
	if out := run(t, rt, third, "pwd; cat /data/*"); out.stdout != "/tmp\none\ntwo\n" {
		t.Errorf("%+v", out)
	}
}

// What a sandbox holds may be more than it may have in memory.
func TestSnapshotInLittleMemory(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	little := map[string]string{"memory": "192Mi"}
	box := create(t, rt, &sandbox.Spec{Limits: little})
	if len(box.Warnings) > 0 {
		t.Skipf("needs control groups: %v", box.Warnings)
	}
	want := run(t, rt, box.ID, "head -c 256M /dev/urandom > big; sha256sum big")
	s := take(t, rt, box.ID)
	if out := run(t, rt, box.ID, "sha256sum big"); out != want {
		t.Errorf("the source: %+v, want %+v", out, want)
	}
	if out := run(t, rt, create(t, rt, &sandbox.Spec{Snapshot: s.ID, Limits: little}).ID, "sha256sum big"); out != want {
		t.Errorf("the new one: %+v, want %+v", out, want)
	}
	_, err := rt.Create(t.Context(), &sandbox.Spec{Snapshot: s.ID, Limits: map[string]string{"disk": "100Mi"}})
	if e, ok := errors.AsType[*sandbox.Error](err); !ok || e.Field != "limits.disk" {
		t.Errorf("without room for it: %v", err)
	}
}

func TestSnapshotRefused(t *testing.T) {
	opts := options(t, t.TempDir())
	opts.Here, opts.SnapshotCap = true, 8<<20
	rt := startRuntime(t, opts)
	here := create(t, rt, &sandbox.Spec{Image: localruntime.ImageHere, Workdir: t.TempDir()}).ID
	box := create(t, rt, nil).ID
	for name, tt := range map[string]struct {
		box, title string
		want       sandbox.Code
	}{
		"unknown":            {id.NewRandom(), "", sandbox.CodeSandboxNotFound},
		"a path":             {"../" + box, "", sandbox.CodeSandboxNotFound},
		"no isolation":       {here, "", sandbox.CodeUnsupported},
		"control characters": {box, "a\x1b[2J", sandbox.CodeInvalid},
		"a long name":        {box, strings.Repeat("x", 129), sandbox.CodeInvalid},
	} {
		if s, err := rt.TakeSnapshot(t.Context(), tt.box, tt.title); sandbox.CodeOf(err) != tt.want {
			t.Errorf("%s: %+v %v, want %s", name, s, err, tt.want)
		}
	}
	run(t, rt, box, "head -c 9M /dev/urandom > big")
	s, err := rt.TakeSnapshot(t.Context(), box, "")
	if err != nil {
		t.Fatal(err)
	}
	if s = settled(t, rt, s); s.State != sandbox.SnapshotFailed || !strings.Contains(s.Message, "may have 8") || s.Size != 0 {
		t.Errorf("one that is too large: %+v", s)
	}
	for name, spec := range map[string]*sandbox.Spec{
		string(sandbox.CodeSnapshotState):    {Snapshot: s.ID},
		string(sandbox.CodeSnapshotNotFound): {Snapshot: box},
		string(sandbox.CodeInvalid):          {Snapshot: s.ID, Image: "host"},
	} {
		if _, err := rt.Create(t.Context(), spec); string(sandbox.CodeOf(err)) != name {
			t.Errorf("create: %v, want %s", err, name)
		}
	}
	for _, wrong := range []string{"", "..", "../../sandboxes/" + box, box} {
		if err := rt.DeleteSnapshot(t.Context(), wrong); sandbox.CodeOf(err) != sandbox.CodeSnapshotNotFound {
			t.Errorf("delete of %q: %v", wrong, err)
		}
	}
	if err := rt.DeleteSnapshot(t.Context(), s.ID); err != nil {
		t.Errorf("delete of a failed one: %v", err)
	}
	run(t, rt, box, "rm big")
	if s := take(t, rt, box); s.Size > 8<<20 {
		t.Errorf("a small one: %+v", s)
	}
}

// A snapshot whose files are damaged makes no sandbox, and leaves nothing.
func TestSnapshotDamaged(t *testing.T) {
	state := t.TempDir()
	rt := startRuntime(t, options(t, state))
	box := create(t, rt, nil).ID
	run(t, rt, box, "head -c 5M /dev/urandom > big")
	for _, name := range []string{"fscheckpoint.pb", "multitar.img", "pages_meta.img"} {
		s := take(t, rt, box)
		if err := os.WriteFile(filepath.Join(state, "snapshots", s.ID, "image", name), []byte("nothing that gVisor wrote"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := rt.Create(t.Context(), &sandbox.Spec{Snapshot: s.ID}); sandbox.CodeOf(err) != sandbox.CodeIsolation {
			t.Errorf("%s: %v", name, err)
		}
	}
	list, err := rt.List(t.Context())
	if err != nil || len(list) != 1 || len(processes(t, state+"/sandboxes")) != len(processes(t, box)) {
		t.Errorf("left: %v %v", err, list)
	}
}

// A server that is stopped ends what it was taking.
func TestSnapshotAndStop(t *testing.T) {
	state := t.TempDir()
	o := startOwner(t, options(t, state))
	box := create(t, o.Runtime, nil).ID
	run(t, o.Runtime, box, "head -c 400M /dev/urandom > big")
	s, err := o.TakeSnapshot(t.Context(), box, "")
	if err != nil {
		t.Fatal(err)
	}
	o.stop()
	rt := startRuntime(t, options(t, state))
	if s, err = rt.GetSnapshot(t.Context(), s.ID); err != nil || s.State != sandbox.SnapshotFailed || !strings.Contains(s.Message, "server ended") {
		t.Errorf("%v %+v", err, s)
	}
	if out := run(t, rt, box, "echo alive"); out.stdout != "alive\n" {
		t.Errorf("%+v", out)
	}
}

// Taking and deleting at once leaves nothing half done, whoever is first.
func TestSnapshotAndDelete(t *testing.T) {
	state := t.TempDir()
	rt := startRuntime(t, options(t, state))
	for range 3 {
		box := create(t, rt, nil).ID
		run(t, rt, box, "head -c 100M /dev/urandom > big")
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				s, err := rt.TakeSnapshot(t.Context(), box, "")
				if err != nil {
					if !errors.Is(err, sandbox.ErrState) && !errors.Is(err, sandbox.ErrNotFound) {
						t.Errorf("take: %v", err)
					}
					return
				}
				if err := rt.DeleteSnapshot(t.Context(), s.ID); err != nil && sandbox.CodeOf(err) != sandbox.CodeSnapshotState {
					t.Errorf("delete snapshot: %v", err)
				}
			})
		}
		all.Go(func() {
			if err := rt.Delete(t.Context(), box); err != nil {
				t.Errorf("delete: %v", err)
			}
		})
		all.Wait()
	}
	list, err := rt.ListSnapshots(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		s = settled(t, rt, s)
		image, err := os.ReadDir(filepath.Join(state, "snapshots", s.ID, "image"))
		if (s.State == sandbox.SnapshotReady) != (err == nil && len(image) == 4) {
			t.Errorf("%+v has the files %v %v", s, image, err)
		}
		if err := rt.DeleteSnapshot(t.Context(), s.ID); err != nil {
			t.Error(err)
		}
	}
}

// TestServerKilledDuringSnapshot kills a server that is taking a snapshot. The
// next one tells that, and the sandbox goes on.
func TestServerKilledDuringSnapshot(t *testing.T) {
	state := t.TempDir()
	o := startOwner(t, options(t, state))
	box := create(t, o.Runtime, nil).ID
	run(t, o.Runtime, box, "head -c 400M /dev/urandom > big")
	o.stop()
	server, _ := startServer(t, state)
	eventually(t, "the server serves", func() bool {
		_, err := owner.Ask(t.Context(), state)
		return err == nil
	})
	askByState(t, state, "POST /v1/sandboxes/"+box+"/snapshots", " 202 ")
	killServer(t, server)

	rt := startRuntime(t, options(t, state))
	list, err := rt.ListSnapshots(t.Context(), "")
	if err != nil || len(list) != 1 {
		t.Fatalf("%v %+v", err, list)
	}
	s := list[0]
	if s.State != sandbox.SnapshotFailed || !strings.Contains(s.Message, "server ended") {
		t.Errorf("%+v", s)
	}
	if out := run(t, rt, box, "echo alive"); out.stdout != "alive\n" {
		t.Errorf("%+v", out)
	}
	if ready := take(t, rt, box); ready.Size < 400<<20 {
		t.Errorf("%+v", ready)
	}
	if err := rt.DeleteSnapshot(t.Context(), s.ID); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(state, "snapshots", s.ID)); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// Snapshots are found again by the next server, also one that it cannot read
// and one that was being deleted.
func TestSnapshotsStay(t *testing.T) {
	state := t.TempDir()
	o := startOwner(t, options(t, state))
	box := create(t, o.Runtime, nil).ID
	run(t, o.Runtime, box, "echo kept > file")
	var taken []*sandbox.Snapshot
	for range 3 {
		taken = append(taken, take(t, o.Runtime, box))
	}
	if err := o.Delete(t.Context(), box); err != nil {
		t.Fatal(err)
	}
	o.stop()
	file := func(i int) string { return filepath.Join(state, "snapshots", taken[i].ID, "snapshot.json") }
	if err := os.WriteFile(file(1), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file(2))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file(2), []byte(strings.Replace(string(text), `"Ready"`, `"Deleting"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	rt := startRuntime(t, options(t, state))
	if got, err := rt.GetSnapshot(t.Context(), taken[0].ID); err != nil || cmp.Diff(got, taken[0]) != "" {
		t.Errorf("%v %s", err, cmp.Diff(got, taken[0]))
	}
	if got, err := rt.GetSnapshot(t.Context(), taken[1].ID); err != nil || got.State != sandbox.SnapshotFailed || !strings.Contains(got.Message, "cannot be read") {
		t.Errorf("%v %+v", err, got)
	}
	if _, err := rt.GetSnapshot(t.Context(), taken[2].ID); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if err := rt.DeleteSnapshot(t.Context(), taken[1].ID); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again, err := rt.Create(ctx, &sandbox.Spec{Snapshot: taken[0].ID})
	if err != nil {
		t.Fatal(err)
	}
	if out := run(t, rt, again.ID, "cat file"); out.stdout != "kept\n" {
		t.Errorf("%+v", out)
	}
}
