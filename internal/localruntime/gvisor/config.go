package gvisor

// The parts of the OCI runtime specification's config.json that we use.
type (
	ociConfig struct {
		Version  string     `json:"ociVersion"`
		Process  ociProcess `json:"process"`
		Root     ociRoot    `json:"root"`
		Hostname string     `json:"hostname"`
		Mounts   []ociMount `json:"mounts"`
		Linux    ociLinux   `json:"linux"`
	}
	ociProcess struct {
		User struct {
			UID int `json:"uid"`
			GID int `json:"gid"`
		} `json:"user"`
		Args         []string            `json:"args"`
		Env          []string            `json:"env"`
		Cwd          string              `json:"cwd"`
		Capabilities map[string][]string `json:"capabilities"`
		Rlimits      []ociRlimit         `json:"rlimits"`
	}
	ociRlimit struct {
		Type string `json:"type"`
		Hard uint64 `json:"hard"`
		Soft uint64 `json:"soft"`
	}
	ociRoot struct {
		Path     string `json:"path"`
		Readonly bool   `json:"readonly"`
	}
	ociMount struct {
		Destination string   `json:"destination"`
		Type        string   `json:"type"`
		Source      string   `json:"source"`
		Options     []string `json:"options,omitempty"`
	}
	ociLinux struct {
		Namespaces []ociNamespace `json:"namespaces"`
	}
	ociNamespace struct {
		Type string `json:"type"`
	}
)

// capabilities are those of the sandbox's root. They count inside only: the
// sandbox's kernel is gVisor. NET_BIND_SERVICE lets a server take port 80, and
// SYS_PTRACE the recorder see which operation a process of another user is of.
var capabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_NET_BIND_SERVICE", "CAP_SETGID", "CAP_SETUID", "CAP_SYS_PTRACE",
}

func config(s *Sandbox) *ociConfig {
	c := &ociConfig{
		Version: "1.0.2", Root: ociRoot{Path: "root/rootfs"}, Hostname: s.Hostname,
		Process: ociProcess{
			Args: s.Args, Env: s.Env, Cwd: "/",
			Capabilities: map[string][]string{
				"bounding": capabilities, "effective": capabilities, "permitted": capabilities,
			},
			Rlimits: []ociRlimit{{Type: "RLIMIT_NOFILE", Hard: 1 << 16, Soft: 1 << 16}},
		},
		Mounts: []ociMount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "mode=755"}},
			{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec"}},
		},
	}
	for _, m := range s.Binds {
		options := []string{"bind", "nosuid", "nodev", "ro"}
		if m.Write {
			options[3] = "rw"
		}
		c.Mounts = append(c.Mounts, ociMount{Destination: m.Target, Type: "bind", Source: m.Source, Options: options})
	}
	for _, kind := range []string{"pid", "ipc", "uts", "mount", "network"} {
		c.Linux.Namespaces = append(c.Linux.Namespaces, ociNamespace{Type: kind})
	}
	return c
}
