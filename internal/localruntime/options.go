package localruntime

import (
	"cmp"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime/egress"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Options say where a runtime keeps its state and what it starts.
type Options struct {
	// StateDir holds everything that the runtime keeps; it is made if absent.
	StateDir string
	// Runsc is the path of gVisor's runsc, a static build. Empty: only the
	// image "here" can be started, if Here allows it.
	Runsc string
	// Recorder is the path of the recorder's static binary.
	Recorder string
	// Self is the executable that calls [Launch] when it is started with
	// SelfArgs and one more argument; empty: this executable.
	Self     string
	SelfArgs []string
	// Version is told on the state socket and by the lifecycle API.
	Version string
	// Here allows the image "here": no isolation, this very machine.
	Here bool
	// Retention is how long the history of a deleted sandbox is kept; 0:
	// seven days.
	Retention time.Duration
	// DefaultTimeout is the life of a sandbox for which none was asked, and the
	// most that one is given, at its creation and by renewing; 0: none.
	DefaultTimeout time.Duration
	// HistoryCap bounds the folder of a sandbox's history, which lies on the
	// host's disk; a sandbox above it is ended. 0: 2 GiB.
	HistoryCap int64
	// WatchEvery is how often the size of a history's folder is looked at; 0:
	// every three seconds.
	WatchEvery time.Duration
	// ImageAliases lead from the name of an image to the one that is given in
	// its place: to "host". [AnyImage] leads from every other name.
	ImageAliases map[string]string
	// SnapshotCap bounds what all snapshots take on the host's disk; 0: 32 GiB.
	SnapshotCap int64
	// CreatePatience is how long a creation waits for an image that has to be
	// pulled, before it answers that the sandbox is pending; 0: ten seconds.
	CreatePatience time.Duration
	// AllowPrivateNetwork lists the private networks that sandboxes may reach
	// through the proxy; none by default.
	AllowPrivateNetwork []netip.Prefix
	// OnConnect is told of every connection that a sandbox asks for.
	OnConnect func(egress.Event)
	// HandOver is called when another process asks to own the state folder, and
	// must not block; nil: this one stays.
	HandOver func()
	// Logger is for the operator; nil: silent.
	Logger *slog.Logger
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

const (
	defaultRetention  = 7 * 24 * time.Hour
	defaultHistoryCap = 2 << 30
	defaultSnapshots  = 32 << 30
	defaultWatchEvery = 3 * time.Second
	// Clients give a request about half a minute.
	defaultCreatePatience = 10 * time.Second
)

func (o *Options) withDefaults() (*Options, error) {
	if o == nil || o.StateDir == "" {
		return nil, sandbox.Invalid("state_dir", "must name the folder in which the runtime keeps its state")
	}
	if o.DefaultTimeout < 0 || o.DefaultTimeout > maxLife {
		return nil, sandbox.Invalid("default_timeout", "must be between 0 (none) and one year")
	}
	opts := *o
	if err := checkAliases(opts.ImageAliases); err != nil {
		return nil, err
	}
	opts.ImageAliases = maps.Clone(opts.ImageAliases)
	opts.Retention = cmp.Or(opts.Retention, defaultRetention)
	opts.HistoryCap = cmp.Or(opts.HistoryCap, defaultHistoryCap)
	opts.SnapshotCap = cmp.Or(opts.SnapshotCap, defaultSnapshots)
	opts.CreatePatience = cmp.Or(opts.CreatePatience, defaultCreatePatience)
	opts.WatchEvery = cmp.Or(opts.WatchEvery, defaultWatchEvery)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Self == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, &sandbox.Error{Op: "find this executable", Code: sandbox.CodeInternal, Err: err}
		}
		opts.Self = self
	}
	return &opts, nil
}
