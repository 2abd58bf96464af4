package localruntime_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime/image/imagetest"
	"github.com/glassboxhq/glassbox/internal/owner"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

func TestImage(t *testing.T) {
	registry := imagetest.Registry(t, nil)
	users := map[string]string{
		"etc/passwd": "root:x:0:0::/root:/bin/sh\nwork:x:1234:1235::/home/work:/bin/sh\n", "etc/group": "extra:x:77:work\n",
		"srv/gone": "gone", "srv/stays": "stays", "root/": "",
	}
	base := imagetest.Layer(t, imagetest.Programs(t, users, "sh", "cat", "id", "ls", "touch", "mkdir", "env", "stat"))
	upper := imagetest.Layer(t, map[string]string{"srv/.wh.gone": "", "srv/new": "new"})
	image := imagetest.Push(t, registry+"/app:1", v1.Config{User: "work", WorkingDir: "/data", Env: []string{"APP=yes", "PATH=/bin"}}, base, upper)
	root := imagetest.Push(t, registry+"/root:1", v1.Config{}, base)
	opts := options(t, t.TempDir())
	rt := startRuntime(t, opts)

	info := create(t, rt, &sandbox.Spec{Image: image})
	if info.Image != image || len(info.Warnings) > 0 || info.State != sandbox.Running {
		t.Errorf("%+v", info)
	}
	for _, tt := range []struct{ line, want string }{
		{"id -u; id -g; id -G", "1234\n1235\n1235 77\n"},
		{"echo $APP $HOME $USER $PATH; pwd", "yes /home/work work /bin\n/data\n"},
		{"cat /srv/stays /srv/new; ls /srv", "staysnewnew\nstays\n"},
		{"echo mine > file && cat file && stat -c %u:%g file .", "mine\n1234:1235\n1234:1235\n"},
		{"cat /etc/hostname; echo $http_proxy; cat /.agent-history/recorder.lock /run/glassbox/boot.json 2>/dev/null || echo closed", "glassbox\nhttp://127.0.0.1:3128\nclosed\n"},
		{`[ -z "$SSL_CERT_FILE" ] || cat "$SSL_CERT_FILE" >/dev/null && echo fine`, "fine\n"},
		{"touch /tmp/x && echo fine; touch /srv/x 2>/dev/null || echo not mine", "fine\nnot mine\n"},
	} {
		if out := run(t, rt, info.ID, tt.line); out.stdout != tt.want {
			t.Errorf("%s: %+v, want %q", tt.line, out, tt.want)
		}
	}
	spec, err := rt.Spec(t.Context(), info.ID)
	if err != nil || spec.Workdir != "/data" {
		t.Errorf("%+v %v", spec, err)
	}

	// What one sandbox writes, no other sees, and the image stays as it was.
	one := create(t, rt, &sandbox.Spec{Image: root, Workdir: "/w"})
	if out := run(t, rt, one.ID, "id -u; pwd; echo changed > /srv/stays; touch /bin/new /etc/hosts; cat /srv/gone"); out.stdout != "0\n/w\ngone" || out.code != 0 {
		t.Errorf("%+v", out)
	}
	two := create(t, rt, &sandbox.Spec{Image: root})
	if out := run(t, rt, two.ID, "cat /srv/stays; ls /bin/new 2>/dev/null || echo none"); out.stdout != "staysnone\n" {
		t.Errorf("%+v", out)
	}
	if got := leftBeside(t, opts.StateDir); got != "" {
		t.Errorf("in the shared folder of an image there is now %s", got)
	}
}

// leftBeside looks for what a sandbox has made in what all sandboxes share.
func leftBeside(t *testing.T, state string) string {
	t.Helper()
	for _, pattern := range []string{"bin/new", "w", "data", "data/file", "workspace", "tmp/x", "dev/*", "proc/*", ".agent-history/*", "run/glassbox/*"} {
		found, err := filepath.Glob(filepath.Join(state, "images", "unpacked", "*", "root", pattern))
		if err != nil || len(found) > 0 {
			return strings.Join(found, " ")
		}
	}
	return ""
}

// TestImageWithoutShell runs programs by their arguments where there is nothing
// else.
func TestImageWithoutShell(t *testing.T) {
	registry := imagetest.Registry(t, nil)
	tool, err := os.ReadFile(recorderBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, &sandbox.Spec{Image: imagetest.Push(t, registry+"/tool:1", v1.Config{User: "65532"}, imagetest.Layer(t, map[string]string{"tool": string(tool)}))})
	if out, err := tryCommand(t.Context(), rt, info.ID, &wire.CommandRequest{ID: id.New(), Args: []string{"/tool", "version"}}); err != nil || out.code != 0 || out.stdout == "" {
		t.Errorf("%+v %v", out, err)
	}
	if out, err := try(t.Context(), rt, info.ID, "echo hello"); err == nil || !strings.Contains(err.Error(), "/bin/sh") {
		t.Errorf("a shell line: %+v %v", out, err)
	}
}

// slowRegistry is a registry that gives no layer away until it may.
func slowRegistry(t *testing.T) (at string, goOn func()) {
	t.Helper()
	gate := make(chan struct{})
	goOn = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(goOn)
	return imagetest.Registry(t, func(r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			select {
			case <-gate:
			case <-r.Context().Done():
			}
		}
	}), goOn
}

func TestImageComesLater(t *testing.T) {
	at, goOn := slowRegistry(t)
	name := imagetest.Push(t, at+"/app:1", v1.Config{WorkingDir: "/data"}, imagetest.Layer(t, imagetest.Programs(t, map[string]string{}, "sh")))
	opts := options(t, t.TempDir())
	opts.CreatePatience = 50 * time.Millisecond
	rt := startRuntime(t, opts)
	info := create(t, rt, &sandbox.Spec{Image: name, Env: map[string]string{"GIVEN": "kept"}})
	if info.State != sandbox.Pending || info.Image != name {
		t.Errorf("%+v", info)
	}
	eventually(t, "it tells what it waits for", func() bool {
		now, err := rt.Get(t.Context(), info.ID)
		return err == nil && now.State == sandbox.Pending && now.Reason == "IMAGE_PULLING" && strings.Contains(now.Message, name)
	})
	if _, err := rt.Pause(t.Context(), info.ID); sandbox.CodeOf(err) != sandbox.CodeSandboxState {
		t.Errorf("pause: %v", err)
	}
	// A program of this user waits for the end.
	answered := make(chan string, 1)
	go func() {
		var answer struct{ Status struct{ State string } }
		post(t, opts.StateDir, "/v1/sandboxes", `{"image":{"uri":"`+name+`"},"resourceLimits":{}}`, &answer)
		answered <- answer.Status.State
	}()
	eventually(t, "it asks", func() bool {
		list, err := rt.List(t.Context())
		return err == nil && len(list) == 2
	})
	select {
	case state := <-answered:
		t.Errorf("the answer came before the image: %s", state)
	default:
	}
	goOn()
	if state := <-answered; state != "Running" {
		t.Errorf("state %q", state)
	}
	eventually(t, "it runs", func() bool {
		now, err := rt.Get(t.Context(), info.ID)
		return err == nil && now.State == sandbox.Running
	})
	if out := run(t, rt, info.ID, "echo $GIVEN; pwd"); out.stdout != "kept\n/data\n" {
		t.Errorf("%+v", out)
	}
}

func TestImageNeverComes(t *testing.T) {
	at, _ := slowRegistry(t)
	opts := options(t, t.TempDir())
	opts.CreatePatience = 50 * time.Millisecond
	rt := startOwner(t, opts)
	name := imagetest.Push(t, at+"/app:1", v1.Config{}, imagetest.Layer(t, map[string]string{"a": "x"}))
	// Deleted while it waits: at once, and for good.
	info := create(t, rt.Runtime, &sandbox.Spec{Image: name})
	if err := rt.Delete(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Get(t.Context(), info.ID); sandbox.CodeOf(err) != sandbox.CodeSandboxNotFound {
		t.Errorf("%v", err)
	}
	// Its server ends.
	info = create(t, rt.Runtime, &sandbox.Spec{Image: name})
	rt.stop()
	again := startRuntime(t, opts)
	got, err := again.Get(t.Context(), info.ID)
	if err != nil || got.State != sandbox.Failed || !strings.Contains(got.Message, "image") {
		t.Errorf("%+v %v", got, err)
	}
	if err := again.Delete(t.Context(), info.ID); err != nil {
		t.Error(err)
	}
}

// TestImageCannotBeHad tells so in the answer, and afterwards where that was
// given before.
func TestImageCannotBeHad(t *testing.T) {
	opts := options(t, t.TempDir())
	rt := startRuntime(t, opts)
	at := imagetest.Registry(t, nil)
	_, err := rt.Create(t.Context(), &sandbox.Spec{Image: at + "/none:1"})
	if sandbox.CodeOf(err) != sandbox.CodeImageNotFound || !strings.Contains(err.Error(), "no such image") || !strings.Contains(err.Error(), "host") {
		t.Errorf("%v", err)
	}
	if list, err := rt.List(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("left: %v %v", list, err)
	}
	// What cannot be used is found after the answer.
	blocked, goOn := slowRegistry(t)
	opts = options(t, t.TempDir())
	opts.CreatePatience = 50 * time.Millisecond
	rt = startRuntime(t, opts)
	info := create(t, rt, &sandbox.Spec{Image: imagetest.Push(t, blocked+"/bad:1", v1.Config{}, imagetest.Layer(t, map[string]string{"../out": "x"}))})
	goOn()
	eventually(t, "it has failed", func() bool {
		now, err := rt.Get(t.Context(), info.ID)
		return err == nil && now.State == sandbox.Failed && strings.Contains(now.Message, "climbs out")
	})
}

// TestImageSnapshot begins from the files of a sandbox over the very image that
// it had, which stays for that.
func TestImageSnapshot(t *testing.T) {
	name := imagetest.Push(t, imagetest.Registry(t, nil)+"/app:1", v1.Config{}, imagetest.Layer(t, imagetest.Programs(t, map[string]string{"old": "old"}, "sh", "cat", "rm")))
	opts := options(t, t.TempDir())
	rt := startRuntime(t, opts)
	first := create(t, rt, &sandbox.Spec{Image: name})
	run(t, rt, first.ID, "rm /old; echo new > /new")
	s := take(t, rt, first.ID)
	if err := rt.Delete(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	var gone struct{ Images []string }
	post(t, opts.StateDir, owner.PathImages+"/prune", "", &gone)
	if len(gone.Images) != 0 {
		t.Errorf("pruned: %v", gone)
	}
	second := create(t, rt, &sandbox.Spec{Snapshot: s.ID})
	if out := run(t, rt, second.ID, "cat /new; cat /old 2>/dev/null || echo gone"); out.stdout != "new\ngone\n" {
		t.Errorf("%+v", out)
	}
	if err := rt.Delete(t.Context(), second.ID); err != nil {
		t.Fatal(err)
	}
	if err := rt.DeleteSnapshot(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	post(t, opts.StateDir, owner.PathImages+"/prune", "", &gone)
	if len(gone.Images) != 1 {
		t.Errorf("not pruned: %v", gone)
	}
}

// post asks the owner of a state folder for something.
func post(t *testing.T, state, route, body string, into any) {
	t.Helper()
	client := &http.Client{Transport: owner.Transport(state)}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+route, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode >= 300 {
		t.Errorf("%s: %s %v", route, resp.Status, err)
	}
}

// TestServerKilledWhilePulling finds, after that, a sandbox that tells why it is
// none, and no half of an image.
func TestServerKilledWhilePulling(t *testing.T) {
	at, goOn := slowRegistry(t)
	name := imagetest.Push(t, at+"/app:1", v1.Config{}, imagetest.Layer(t, imagetest.Programs(t, map[string]string{}, "sh")))
	state := t.TempDir()
	server, ids := startServer(t, state, name)
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	goOn()
	rt := startRuntime(t, options(t, state))
	info, err := rt.Get(t.Context(), ids[0])
	if err != nil || info.State != sandbox.Failed || !strings.Contains(info.Message, "while the image") {
		t.Errorf("%+v %v", info, err)
	}
	if left, err := filepath.Glob(filepath.Join(state, "images", "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	create(t, rt, &sandbox.Spec{Image: name})
}

// TestOtherUsersProcessesEnd ends what a command of the image's user has left
// when the recorder, which is root, dies.
func TestOtherUsersProcessesEnd(t *testing.T) {
	files := imagetest.Programs(t, map[string]string{}, "sh", "sleep", "grep")
	name := imagetest.Push(t, imagetest.Registry(t, nil)+"/app:1", v1.Config{User: "1234"}, imagetest.Layer(t, files))
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, &sandbox.Spec{Image: name})
	const runs = "grep -q [5]4321 /proc/[0-9]*/cmdline 2>/dev/null && echo runs || echo gone" // not itself
	go func() { _, _ = try(t.Context(), rt, info.ID, "sleep 54321; true") }()                 // it is lost with the recorder
	eventually(t, "it runs", func() bool { return run(t, rt, info.ID, runs).stdout == "runs\n" })
	kill := &wire.CommandRequest{ID: id.New(), Line: "kill -9 $PPID; sleep 1", User: &sandbox.User{UID: 0}}
	if _, err := tryCommand(t.Context(), rt, info.ID, kill); err == nil {
		t.Fatal("the recorder survived")
	}
	if out := run(t, rt, info.ID, runs); out.stdout != "gone\n" {
		t.Errorf("%+v", out)
	}
}
