package localruntime

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/glassboxhq/glassbox/internal/localruntime/userland"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// guestRecorder is the recorder's binary as a sandbox sees it.
const guestRecorder = wire.GuestBin + "/glassbox-recorder"

// bootOf returns what a sandbox of the image host is told.
func bootOf(r *record, env map[string]string) *wire.Boot {
	config, _ := historyConfig(&r.Spec) // they were checked before they were kept
	held, _, err := readLimits(r.Spec.Limits)
	if err != nil {
		held = &limits{}
	}
	b := &wire.Boot{
		SandboxID: r.Info.ID, InstanceID: r.Info.InstanceID, Name: r.Info.Name, Metadata: r.Info.Metadata,
		Token: r.Token, ExecdToken: r.ExecdToken, Workdir: r.Spec.Workdir,
		Env:        guestEnv(r.Spec.Workdir),
		HistoryDir: wire.GuestHistory,
		Socket:     wire.GuestSocket,
		ExpiryFile: wire.GuestExpiry,
		HistoryOff: r.Spec.History == HistoryNone,
		BestEffort: r.Spec.History == HistoryBestEffort,
		History:    config,

		MemoryBytes: held.Memory, CPUMilli: held.CPU,

		Concurrency:   r.Spec.Concurrency,
		NoFileChanges: r.Spec.NoFileChanges,
	}
	if r.Spec.Network == NetworkProxy {
		b.Egress, b.EgressPort = wire.GuestEgress, wire.EgressPort
		maps.Copy(b.Env, proxyEnv())
	}
	maps.Copy(b.Env, env)
	return b
}

// guestEnv is the environment of a sandbox before its owner adds to it.
func guestEnv(workdir string) map[string]string {
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if bin := userland.VenvBin(workdir); bin != "" {
		path = bin + ":" + path
	}
	return map[string]string{
		"PATH": path,
		// The sandbox's layer is thrown away, so python3 -m pip may install beside
		// the system's packages.
		"PIP_BREAK_SYSTEM_PACKAGES": "1",
		"HOME":                      "/root", "USER": "root", "LOGNAME": "root", "SHELL": "/bin/bash", "LANG": "C.UTF-8",
	}
}

func proxyEnv() map[string]string {
	url := "http://127.0.0.1:" + strconv.Itoa(wire.EgressPort)
	const local = "localhost,127.0.0.1,::1"
	return map[string]string{
		"http_proxy": url, "https_proxy": url, "HTTP_PROXY": url, "HTTPS_PROXY": url,
		"no_proxy": local, "NO_PROXY": local,
	}
}

// writeBoot writes the boot file, which holds secrets.
func (d dir) writeBoot(b *wire.Boot) error {
	text, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("write boot file: %w", err)
	}
	if err := writeFile(d.boot(), text); err != nil {
		return fmt.Errorf("write boot file: %w", err)
	}
	return nil
}

func environ(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// notRun tells when the entrypoint asks for more than to stay alive.
func notRun(spec *sandbox.Spec) []string {
	idle := [][]string{{"tail", "-f", "/dev/null"}, {"sleep", "infinity"}, {"sh"}, {"bash"}, {"/bin/sh"}, {"/bin/bash"}}
	for _, words := range idle {
		if slices.Equal(spec.Entrypoint, words) {
			return nil
		}
	}
	if len(spec.Entrypoint) == 0 {
		return nil
	}
	return []string{"the entrypoint is not started: in the local runtime the recorder is the first process; run it as a command"}
}
