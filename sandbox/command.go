package sandbox

import (
	"context"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Command says what to run, and how.
type Command struct {
	// ID names the operation, as a UUID; empty: the session makes one. The
	// same id twice is one command: the second call gets the first's result.
	ID string
	// Line is run by bash, or by sh where there is no bash. Args is run as
	// it stands, without a shell. Exactly one of the two is given; on a
	// terminal it may be neither: then an interactive shell is run.
	Line string
	Args []string
	// Dir is the working directory; empty: the sandbox's.
	Dir string
	// Env is added to the sandbox's environment.
	Env map[string]string
	// Stdin is what the command reads; nil: nothing, as from /dev/null.
	Stdin io.Reader
	// StdinPipe lets Process.Stdin feed the command instead.
	StdinPipe bool
	// Timeout stops the command; 0: no limit.
	Timeout time.Duration
	// Grace is the time between TERM and KILL when the command is stopped;
	// 0: three seconds.
	Grace time.Duration
	// Terminal runs the command on a terminal of this size: its output is
	// Stdout alone, in the order in which it was shown, and its input is what
	// is typed. The end of Stdin is typed as Ctrl-D.
	Terminal *TerminalSize
	// User runs it as somebody else; nil: as the session itself, which in a
	// sandbox is root.
	User *User
	// Detached lets the command run on when its caller goes.
	Detached bool
	// Stdout and Stderr, when set, get the output as it comes, beside Result.
	Stdout, Stderr io.Writer
	// MaxOutput bounds each stream in Result, MaxTail what of that is kept
	// for its end; 0: 1 MiB and 256 KiB. The history keeps more.
	MaxOutput, MaxTail int
}

// User is who a command runs as. HOME and the like stay as they are.
type User struct {
	UID uint32 `json:"uid"`
	// GID is the group; nil: the user's own, or one of the same number for a
	// user whom the sandbox does not know.
	GID *uint32 `json:"gid,omitempty"`
}

// The limits of a command.
const (
	MaxCommandBytes    = 4 << 20 // of Line, or of all Args together
	MaxEnvBytes        = 1 << 20 // of all names and values together
	DefaultGrace       = 3 * time.Second
	DefaultMaxOutput   = 1 << 20
	DefaultMaxTail     = 256 << 10
	maxTimeout         = 365 * 24 * time.Hour
	maxEnvironmentKeys = 4096
)

// Validate tells the first thing about the command that cannot be run, with
// the field and the rule.
func (c *Command) Validate() error {
	if err := c.validateWords(); err != nil {
		return err
	}
	switch {
	case strings.ContainsRune(c.Dir, 0):
		return Invalid("cwd", "must not contain NUL bytes")
	case c.Timeout < 0 || c.Timeout > maxTimeout:
		return Invalid("timeout", "must be between 0 (no limit) and one year")
	case c.Grace < 0 || c.Grace > time.Hour:
		return Invalid("grace", "must be between 0 (three seconds) and one hour")
	case c.MaxOutput < 0 || c.MaxTail < 0:
		return Invalid("max_output", "must not be negative")
	case c.Stdin != nil && c.StdinPipe:
		return Invalid("stdin", "give either a reader or ask for a pipe")
	case c.Terminal != nil:
		if err := c.Terminal.Validate(); err != nil {
			return err
		}
	}
	return ValidateEnv(c.Env)
}

// validateWords looks at what is run.
func (c *Command) validateWords() error {
	size := len(c.Line)
	for _, arg := range c.Args {
		size += len(arg)
		if strings.ContainsRune(arg, 0) {
			return Invalid("args", "must not contain NUL bytes")
		}
	}
	switch {
	case c.Terminal != nil && c.Line == "" && len(c.Args) == 0:
	case (c.Line == "") == (len(c.Args) == 0):
		return Invalid("command", "give either a shell line or an argument list, and not an empty one")
	case len(c.Args) > 0 && c.Args[0] == "":
		return Invalid("args", "the first argument names the program and must not be empty")
	case size > MaxCommandBytes:
		return Invalid("command", "must be at most 4 MiB; write a file and run that")
	case strings.ContainsRune(c.Line, 0):
		return Invalid("command", "must not contain NUL bytes")
	case !utf8.ValidString(c.Display() + c.Dir):
		return Invalid("command", "must be UTF-8; put other bytes into a file or into stdin")
	}
	return nil
}

// ValidateEnv tells what of an environment no process can be given.
func ValidateEnv(env map[string]string) error {
	size := 0
	for _, key := range slices.Sorted(maps.Keys(env)) {
		size += len(key) + len(env[key])
		switch {
		case key == "":
			return Invalid("env", "a name must not be empty")
		case strings.ContainsAny(key, "=\x00"):
			return Invalid("env", "the name "+quote(key)+" must not contain '=' or NUL")
		case !utf8.ValidString(key + env[key]):
			return Invalid("env", "the name and the value of "+quote(key)+" must be UTF-8")
		case strings.ContainsRune(env[key], 0):
			return Invalid("env", "the value of "+quote(key)+" must not contain NUL")
		}
	}
	if size > MaxEnvBytes || len(env) > maxEnvironmentKeys {
		return Invalid("env", "must be at most 1 MiB and 4096 names")
	}
	return nil
}

// Display returns the command as one line for people: Line itself, or Args
// quoted so that a shell would read them back.
func (c *Command) Display() string {
	switch {
	case c.Line != "":
		return c.Line
	case len(c.Args) == 0 && c.Terminal != nil:
		return "(interactive shell)"
	}
	return Join(c.Args)
}

// Status tells how an operation stands or ended.
type Status string

// The statuses of an operation. All but Started are final.
const (
	Started      Status = "started"
	Succeeded    Status = "succeeded"
	Unsuccessful Status = "failed"
	Cancelled    Status = "cancelled"
	TimedOut     Status = "timeout"
	Lost         Status = "unknown" // nobody saw the end
)

// Result is what a command left.
type Result struct {
	OperationID string `json:"operation_id"`
	Status      Status `json:"status"`
	// ExitCode is the command's; 128 + n when signal n ended it; -1 when
	// nobody saw the end.
	ExitCode int    `json:"exit_code"`
	Signal   string `json:"signal,omitempty"`
	// Stdout and Stderr hold the bytes as they were written, each bounded as
	// Command.MaxOutput says: then the middle is missing and Truncated is true.
	Stdout []byte `json:"stdout"`
	Stderr []byte `json:"stderr"`
	// StdoutBytes and StderrBytes count all that was written.
	StdoutBytes int64         `json:"stdout_bytes"`
	StderrBytes int64         `json:"stderr_bytes"`
	Truncated   bool          `json:"truncated"`
	StartedAt   time.Time     `json:"started_at"`
	Duration    time.Duration `json:"duration"`
	// Reason tells in words why there is no ordinary end.
	Reason string `json:"reason,omitempty"`
	// Recording tells how much of this the history holds.
	Recording Recording `json:"recording"`
}

// Recording tells how much of an operation a history holds.
type Recording string

// The storage states of an operation.
const (
	RecordedWhole     Recording = "complete"
	RecordedPart      Recording = "partial"             // recording failed in between
	RecordedTruncated Recording = "truncated_by_policy" // the output went over the cap
	RecordedMetadata  Recording = "metadata_only"       // output was not asked to be kept
	NotRecorded       Recording = "none"
)

// Stream tells the two outputs of a command apart.
type Stream string

// The output streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Chunk is a piece of output, as it was read.
type Chunk struct {
	Stream Stream
	Offset int64 // of its first byte in the stream
	Time   time.Time
	Data   []byte
}

// Offsets name a place in a command's output. A negative one counts from the
// end of what there is at that moment.
type Offsets struct {
	Stdout, Stderr int64
}

// Control reaches a command that runs.
type Control interface {
	// Stdin is the command's input; closing it ends the input.
	Stdin() io.WriteCloser
	// Signal sends a signal, named as kill names it (TERM), to the whole
	// process group.
	Signal(ctx context.Context, name string) error
	// Stop ends the command as cancelled: TERM to the whole process group, and
	// KILL after the grace. It does not wait for the end.
	Stop(ctx context.Context) error
}

// Process is a command that was started.
type Process interface {
	Control
	ID() string
	// Next returns the next piece of output, and io.EOF after the last. The
	// data may be used until the next call.
	Next(ctx context.Context) (Chunk, error)
	// Wait waits for the end and returns the result, without the output.
	Wait(ctx context.Context) (*Result, error)
	// Close lets go of the process; it goes on if it was started Detached,
	// and is stopped otherwise.
	Close() error
}

// Starter is a session that can hand out a running command.
type Starter interface {
	Start(ctx context.Context, cmd *Command) (Process, error)
}

// Attacher is a session that finds a command again, running or ended, by the
// id of its operation, and gives its output from a place onward.
type Attacher interface {
	Attach(ctx context.Context, id string, from Offsets) (Process, error)
	// Control returns what steers a running command, without its output: a
	// Terminal, if it runs on one.
	Control(ctx context.Context, id string) (Control, error)
}

// Join quotes args so that a POSIX shell reads them back as they are.
func Join(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = quoteWord(arg)
	}
	return strings.Join(words, " ")
}

func quoteWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-+=./:,@%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Resolve makes a path absolute and clean; a relative one lies below dir.
func Resolve(dir, name string) string {
	if !path.IsAbs(name) {
		name = path.Join(dir, name)
	}
	return path.Clean(name)
}
