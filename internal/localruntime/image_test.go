package localruntime_test

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// hub is a registry on the loopback.
func hub(t testing.TB, before func(*http.Request)) string {
	t.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil {
			before(r)
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// layer is a tar of files by name; one that ends in a slash is a folder.
func layer(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, content := range files {
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content)), ModTime: time.Unix(1700000000, 0)}
		if strings.HasSuffix(name, "/") {
			h.Typeflag, h.Size = tar.TypeDir, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// programs are files of this machine with the libraries that they need.
func programs(t testing.TB, files map[string]string, words ...string) map[string]string {
	t.Helper()
	take := func(name, from string) {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(name, "/")] = string(content)
	}
	for _, word := range words {
		found, err := exec.LookPath(word)
		if err != nil {
			t.Fatal(err)
		}
		take("/bin/"+word, found)
		out, err := exec.CommandContext(t.Context(), "ldd", found).Output()
		if err != nil {
			t.Fatalf("ldd %s: %v", found, err)
		}
		for field := range strings.FieldsSeq(string(out)) {
			if filepath.IsAbs(field) {
				take(field, field)
			}
		}
	}
	return files
}

func push(t testing.TB, to string, config v1.Config, layers ...[]byte) string {
	t.Helper()
	img := empty.Image
	for _, content := range layers {
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
		if err == nil {
			img, err = mutate.AppendLayers(img, l)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	ref, err := name.ParseReference(to)
	if err == nil {
		img, err = mutate.ConfigFile(img, file)
	}
	if err == nil {
		err = remote.Write(ref, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestImage(t *testing.T) {
	registry := hub(t, nil)
	users := map[string]string{
		"etc/passwd": "root:x:0:0::/root:/bin/sh\nwork:x:1234:1235::/home/work:/bin/sh\n", "etc/group": "extra:x:77:work\n",
		"srv/gone": "gone", "srv/stays": "stays", "root/": "",
	}
	base := layer(t, programs(t, users, "sh", "cat", "id", "ls", "touch", "mkdir", "env", "stat"))
	upper := layer(t, map[string]string{"srv/.wh.gone": "", "srv/new": "new"})
	image := push(t, registry+"/app:1", v1.Config{User: "work", WorkingDir: "/data", Env: []string{"APP=yes", "PATH=/bin"}}, base, upper)
	root := push(t, registry+"/root:1", v1.Config{}, base)
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
	registry := hub(t, nil)
	tool, err := os.ReadFile(recorderBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, &sandbox.Spec{Image: push(t, registry+"/tool:1", v1.Config{User: "65532"}, layer(t, map[string]string{"tool": string(tool)}))})
	if out, err := tryCommand(t.Context(), rt, info.ID, &wire.CommandRequest{ID: id.New(), Args: []string{"/tool", "version"}}); err != nil || out.code != 0 || out.stdout == "" {
		t.Errorf("%+v %v", out, err)
	}
	if out, err := try(t.Context(), rt, info.ID, "echo hello"); err == nil || !strings.Contains(err.Error(), "/bin/sh") {
		t.Errorf("a shell line: %+v %v", out, err)
	}
}
