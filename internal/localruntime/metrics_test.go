package localruntime_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// askExecd asks a sandbox over execd's wire.
func askExecd(t *testing.T, rt *localruntime.Runtime, box, route, body string) string {
	t.Helper()
	access, err := rt.Access(t.Context(), box)
	if err != nil {
		t.Fatal(err)
	}
	method, path, _ := strings.Cut(route, " ")
	req, err := http.NewRequestWithContext(t.Context(), method, "http://recorder"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(wire.HeaderExecdToken, access.ExecdToken)
	res, err := rt.Conn(box).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		t.Fatalf("%s: %d %s, %v", route, res.StatusCode, text, err)
	}
	return string(text)
}

// usage is what /metrics answers.
type usage struct {
	CPUs  float64 `json:"cpu_count"`
	CPU   float64 `json:"cpu_used_pct"`
	Total float64 `json:"mem_total_mib"`
	Used  float64 `json:"mem_used_mib"`
}

// Metrics are the sandbox's own, against its limits.
func TestMetrics(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, &sandbox.Spec{Limits: map[string]string{"memory": "512Mi", "cpu": "500m"}})
	read := func() (m usage) {
		t.Helper()
		if err := json.Unmarshal([]byte(askExecd(t, rt, info.ID, "GET /metrics", "")), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	before := read()
	if before.CPUs != 0.5 || before.Total != 512 || before.Used <= 0 || before.Used > 300 {
		t.Errorf("got %+v, want the limits and what is used of them", before)
	}
	run(t, rt, info.ID, `python3 -c '
import time
b = bytearray(150 << 20)
for i in range(0, len(b), 4096): b[i] = 1
print("up", flush=True)
while True: pass' >up 2>&1 & until grep -q up up; do sleep 0.05; done`)
	eventually(t, "what a program uses is told", func() bool {
		now := read()
		return now.Used > before.Used+120 && now.Used <= now.Total && now.CPU > 50
	})
}

// What shells keep between their runs is no business of who empties the
// temporary directory.
func TestShellOutlivesCleaning(t *testing.T) {
	rt := startRuntime(t, options(t, t.TempDir()))
	info := create(t, rt, nil)
	var shell struct {
		ID string `json:"session_id"`
	}
	if err := json.Unmarshal([]byte(askExecd(t, rt, info.ID, "POST /session", "")), &shell); err != nil {
		t.Fatal(err)
	}
	say := func(line string) string {
		body, err := json.Marshal(map[string]string{"command": line})
		if err != nil {
			t.Fatal(err)
		}
		return askExecd(t, rt, info.ID, "POST /session/"+shell.ID+"/run", string(body))
	}
	say("export A=kept; cd /usr")
	run(t, rt, info.ID, "rm -rf /tmp/* /tmp/.[a-z]* /var/tmp/*")
	if text := say("echo $A; pwd"); !strings.Contains(text, `"text":"kept"`) || !strings.Contains(text, `"text":"/usr"`) {
		t.Errorf("got %s", text)
	}
	out := run(t, rt, info.ID, `stat -c %a /run/glassbox-*; ls /tmp`)
	if out.stdout != "700\n" {
		t.Errorf("where it is kept: %+v", out)
	}
	askExecd(t, rt, info.ID, "DELETE /session/"+shell.ID, "")
	if out := run(t, rt, info.ID, "ls /run/glassbox-*"); !bytes.Equal([]byte(out.stdout), nil) {
		t.Errorf("it is left: %+v", out)
	}
}
