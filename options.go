package glassbox

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
)

// Cleanup says what Close does with a sandbox that this handle created.
type Cleanup string

// The ways to clean up.
const (
	OnClose  Cleanup = "on_close" // deletes it
	AfterTTL Cleanup = "ttl"      // leaves it to the service to delete it, Options.CleanupTTL later
	Never    Cleanup = "never"    // keeps it
)

// HistoryMode says how a sandbox is recorded.
type HistoryMode string

// The ways to record.
const (
	Recorded   HistoryMode = ""            // what cannot be recorded is refused
	BestEffort HistoryMode = "best_effort" // what cannot be recorded runs all the same, and is counted
	NoHistory  HistoryMode = "none"        // nothing is recorded
)

// Options set up a sandbox, or the way to one. The zero value of a field is
// its default.
type Options struct {
	// APIKey opens the service; empty: GLASSBOX_API_KEY or
	// OPEN_SANDBOX_API_KEY, and none is needed for our own local runtime on
	// this machine. It is never recorded, logged or told in an error.
	APIKey Secret
	// Name is shown to people: up to 128 characters of any script. Two
	// sandboxes may share one.
	Name string
	// Image to run; empty: python:3.12, and host on our local runtime.
	Image string
	// Snapshot is the id of one to begin from, instead of an image; its working
	// directory is the default.
	Snapshot string
	// Workdir is where commands run and relative paths begin, made if it is
	// not there; empty: /workspace.
	Workdir string
	// Env is the environment of every command. Values are not recorded.
	Env map[string]string
	// Metadata is kept by the service: values of up to 63 letters, digits,
	// dots, dashes and underscores.
	Metadata map[string]string
	// Limits, as memory: "512Mi" or cpu: "500m".
	Limits map[string]string
	// Network is none or proxy on our local runtime; empty: proxy.
	Network string
	// TTL is how long the sandbox lives after it was last used by this handle:
	// its end is set anew after each operation, and while one runs, to within a
	// twentieth of TTL; a life that others have made longer stays. A minute to a
	// year; 0: as the service says, and nothing is renewed.
	TTL time.Duration
	// Cleanup; empty: OnClose.
	Cleanup Cleanup
	// CleanupTTL is how long a sandbox lives after Close where Cleanup is
	// AfterTTL. The service ends it, too if this program dies.
	CleanupTTL time.Duration
	// ConsumerWait is how long Close waits, before it deletes the sandbox, for
	// those who read its history: until all that are active have acknowledged
	// what there is. 0: 2 s; negative: not at all.
	ConsumerWait time.Duration
	// ArchiveDir is a folder into which Close writes the history of a sandbox
	// that it deletes, as SANDBOX.jsonl; Archive is a store for it, of this
	// sandbox alone. A sandbox whose history could not be saved is not deleted.
	ArchiveDir string
	Archive    Archive
	// HistoryMode; empty: Recorded.
	HistoryMode HistoryMode
	// History says what is kept, for how long and in which form; nil: the
	// defaults.
	History *history.Config
	// Concurrency bounds what works at once in the sandbox, whoever asks for
	// it; nil: 4 commands, 32 reads, 8 writes and 1 upload.
	Concurrency *Concurrency
	// NoFileChanges does not look for what commands do to files; else each
	// command's operation tells it.
	NoFileChanges bool
	// Direct goes to the sandbox around the service's proxy.
	Direct bool
	// Transport carries every request to the service and its sandboxes. With
	// one, neither a key of the environment nor the socket of our own local
	// runtime is used. Nil: an ordinary one.
	Transport http.RoundTripper
	// NoInstall works with the recorder that a sandbox has, and puts none there:
	// where there is none, it cannot be opened.
	NoInstall bool
	// RequestTimeout bounds one ordinary request, not a stream, a transfer or
	// a command; 0: 30 s. ReadyTimeout bounds the wait for a new sandbox to
	// answer; 0: 30 s.
	RequestTimeout, ReadyTimeout time.Duration
	// StateDir is where our local runtime keeps its state; empty:
	// GLASSBOX_STATE_DIR, or glassbox below XDG_STATE_HOME or ~/.local/state.
	StateDir string
	// Source is the door that the history names; empty: sdk.
	Source string
	// Logger is for the operator; nil: silent.
	Logger *slog.Logger
}

// The bounds of options.
const (
	minTTL          = time.Minute
	maxTTL          = 365 * 24 * time.Hour
	maxTimeout      = 24 * time.Hour
	maxConsumerWait = time.Hour
	defaultTimeout  = 30 * time.Second
	defaultWait     = 2 * time.Second
)

// withDefaults returns a copy with the defaults filled in, and all that is
// wrong with it.
func (o *Options) withDefaults() (*Options, error) {
	opts := Options{}
	if o != nil {
		opts = *o
	}
	faults := opts.check()
	opts.Cleanup = cmp.Or(opts.Cleanup, OnClose)
	opts.RequestTimeout = cmp.Or(opts.RequestTimeout, defaultTimeout)
	opts.ReadyTimeout = cmp.Or(opts.ReadyTimeout, defaultTimeout)
	opts.ConsumerWait = cmp.Or(opts.ConsumerWait, defaultWait)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.HistoryMode == Recorded && opts.History.Filled().Consistency == history.BestEffort {
		opts.HistoryMode = BestEffort
	}
	return &opts, errors.Join(append(faults, opts.Concurrency.Validate(), opts.History.Validate())...)
}

// check tells every field whose value is outside its bounds.
func (o *Options) check() (faults []error) {
	for _, rule := range []struct {
		broken bool
		field  string
		value  any
		must   string
	}{
		{!slices.Contains([]Cleanup{"", OnClose, AfterTTL, Never}, o.Cleanup), "cleanup", o.Cleanup, "be on_close, ttl or never"},
		{!slices.Contains([]HistoryMode{Recorded, BestEffort, NoHistory}, o.HistoryMode), "history", o.HistoryMode, "be empty, best_effort or none"},
		{!slices.Contains([]string{"", "none", "proxy"}, o.Network), "network", o.Network, "be none or proxy"},
		{o.TTL != 0 && (o.TTL < minTTL || o.TTL > maxTTL), "ttl", o.TTL, "be from a minute to a year, or absent for as long as the service says"},
		{o.Cleanup == AfterTTL && (o.CleanupTTL < time.Second || o.CleanupTTL > maxTTL), "cleanup_ttl", o.CleanupTTL, "be from a second to a year, as cleanup is ttl"},
		{o.Cleanup != AfterTTL && o.CleanupTTL != 0, "cleanup_ttl", o.CleanupTTL, "be absent unless cleanup is ttl"},
		{o.ConsumerWait > maxConsumerWait, "consumer_wait", o.ConsumerWait, "be at most an hour, negative for none, or absent for 2 s"},
		{o.RequestTimeout < 0 || o.RequestTimeout > maxTimeout, "request_timeout", o.RequestTimeout, "be positive and at most a day, or absent for 30 s"},
		{o.ReadyTimeout < 0 || o.ReadyTimeout > maxTimeout, "ready_timeout", o.ReadyTimeout, "be positive and at most a day, or absent for 30 s"},
		{o.ArchiveDir != "" && o.Archive != nil, "archive", o.ArchiveDir, "not be given twice: as a folder and as a store"},
	} {
		if rule.broken {
			faults = append(faults, sandbox.Invalid(rule.field, fmt.Sprintf("is %v, but must %s", rule.value, rule.must)))
		}
	}
	return faults
}

// life is what the service is asked for at the creation; 0: nothing is.
func (o *Options) life() time.Duration {
	if o.TTL == 0 && o.Cleanup == AfterTTL {
		return max(o.CleanupTTL, minTTL)
	}
	return o.TTL
}

// validateCreate tells all that is wrong with a call of Create.
func validateCreate(url string, o *Options) error {
	opts, err := o.withDefaults()
	if url != Local {
		_, urlErr := opensandbox.ParseURL(url)
		err = errors.Join(urlErr, err)
	}
	mine := *opts
	mine.TTL, mine.CleanupTTL, mine.History = 0, 0, nil // were looked at
	return errors.Join(err, opensandbox.ValidateSpec((&service{opts: &mine}).spec()))
}
