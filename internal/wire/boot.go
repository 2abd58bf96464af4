package wire

import (
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Boot is the file from which a recorder learns who it is. In the local
// runtime the host writes it, and the sandbox sees it read-only; elsewhere it
// is brought along with the recorder.
type Boot struct {
	SandboxID  string            `json:"sandbox_id"`
	InstanceID string            `json:"instance_id"`
	Name       string            `json:"name,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	// Token opens our wire, ExecdToken execd's.
	Token      string `json:"token"`
	ExecdToken string `json:"execd_token"`
	Workdir    string `json:"workdir"`
	// AnyWorkdir says that nobody asked for this one: where it cannot be made,
	// an installed recorder takes its user's home.
	AnyWorkdir bool              `json:"any_workdir,omitempty"`
	Env        map[string]string `json:"env,omitempty"` // of every command
	// User is as whom commands run; nil: root.
	User *BootUser `json:"user,omitempty"`
	// InheritEnv passes the recorder's own environment on, beneath Env: it was
	// started in the sandbox's.
	InheritEnv bool `json:"inherit_env,omitempty"`
	// HistoryDir holds the history; empty: /.agent-history.
	HistoryDir string `json:"history_dir,omitempty"`
	// HistoryOff runs everything and records nothing.
	HistoryOff bool `json:"history_off,omitempty"`
	// BestEffort runs what cannot be recorded; else it is refused.
	BestEffort bool `json:"best_effort,omitempty"`
	// NoFileChanges does not look for what commands do to files.
	NoFileChanges bool `json:"no_file_changes,omitempty"`
	// History says what is kept; nil: the defaults, or what the history says.
	History *history.Config `json:"history,omitempty"`
	// Concurrency bounds what works at once; nil: the defaults.
	Concurrency *sandbox.Concurrency `json:"concurrency,omitempty"`
	// MemoryBytes and CPUMilli (thousandths of a processor) are the sandbox's
	// limits, which are told to who asks; 0: there are none.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	CPUMilli    int64 `json:"cpu_milli,omitempty"`
	// Listen is an address (host:port) at which our wire is served as plain
	// HTTP; if the port is taken, a free one is. Empty: nowhere.
	Listen string `json:"listen,omitempty"`
	// Socket is dialled, and our wire is served over it as HTTP/2. Empty: none.
	Socket string `json:"socket,omitempty"`
	// Egress is a socket of the host that speaks HTTP proxy; the recorder
	// offers it on EgressPort of the sandbox's loopback. Empty: no network.
	Egress     string `json:"egress,omitempty"`
	EgressPort int    `json:"egress_port,omitempty"`
	// ExpiryFile holds the moment (RFC 3339) at which init ends the sandbox;
	// the host rewrites it on renewal. Empty or no such file: never.
	ExpiryFile string `json:"expiry_file,omitempty"`
}

// BootUser is a user of a sandbox.
type BootUser struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"`
}

// Door is the file recorder.json in the recorder's folder: how to reach a
// recorder that listens. It is written by rename, with mode 0600.
type Door struct {
	Port     int    `json:"port"`
	Token    string `json:"token"`
	Version  string `json:"version"`
	Protocol int    `json:"protocol"`
	PID      int    `json:"pid"`
}

// DoorFile is the name of that file.
const DoorFile = "recorder.json"

// What a sandbox of the local runtime sees.
const (
	GuestRun       = "/run/glassbox" // read-only
	GuestBoot      = GuestRun + "/boot.json"
	GuestSocket    = GuestRun + "/recorder.sock"
	GuestEgress    = GuestRun + "/egress.sock"
	GuestExpiry    = GuestRun + "/expires_at"
	GuestBin       = "/opt/glassbox" // read-only; holds the recorder
	GuestHistory   = "/.agent-history"
	EgressPort     = 3128
	DialBackoff    = 250 * time.Millisecond // the longest wait between two dials of a host that is away
	DefaultWorkdir = "/workspace"
)

// InstalledRecorder is where a recorder lies that was put into a sandbox with
// this folder, InstalledBoot its boot file.
func InstalledRecorder(dir string) string { return dir + "/bin/glassbox-recorder" }

// InstalledBoot is told at InstalledRecorder.
func InstalledBoot(dir string) string { return dir + "/boot.json" }
