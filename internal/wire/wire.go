// Package wire is the recorder's own protocol, as both of its ends know it:
// routes, headers, frames and errors over plain HTTP.
//
// A command is one POST whose answer is a stream of [Frame]s that ends with
// FrameExit or FrameError; a stream that ends otherwise was cut, and is taken
// up again by GET with the offsets reached. Everything else is one request
// and one answer, JSON or the bytes of a file. Errors are JSON of the form
// {"error": {"code", "message", ...}} with a status from one table.
//
// The protocol number is [Protocol]; a recorder speaks the last two. Docs:
// docs/recorder.md.
package wire

import (
	"encoding/json"
	"net/url"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Protocol is the number of this protocol.
const Protocol = 1

// DefaultPort is where a recorder listens for its own wire, if it is free.
const DefaultPort = 44780

// ExecdPort is where an execd, or a recorder in its place, listens.
const ExecdPort = 44772

// QueryUntold is the query of a POST to PathOps for an act that its client may
// have recorded itself.
const QueryUntold = "untold"

// Headers.
const (
	HeaderRecorder = "X-Glassbox-Recorder" // of every answer: the protocol number
	HeaderToken    = "X-Glassbox-Token"
	HeaderID       = "X-Glassbox-Operation" // id of the operation, both ways
	HeaderFile     = "X-Glassbox-File"      // of a read: the FileInfo, in JSON
	HeaderLength   = "X-Glassbox-Length"    // of a read: the number of bytes to come, where it is known
	HeaderSource   = "X-Glassbox-Source"
	HeaderRecorded = "X-Glassbox-Recorded" // id under which the client records what it asks of the lifecycle API
	HeaderAgentID  = "X-Agent-Id"
	HeaderAgent    = "X-Agent-Type"
	HeaderThread   = "X-Thread-Id"
	HeaderRun      = "X-Run-Id"
	HeaderCorr     = "X-Correlation-Id"
	HeaderTrace    = "Traceparent"
	// HeaderExecdToken is execd's own token header.
	HeaderExecdToken = "X-EXECD-ACCESS-TOKEN"
)

// Routes. An {id} is the id of an operation.
const (
	Root         = "/glassbox/v1"
	PathPing     = "/ping"                            // GET, without a token
	PathInfo     = Root + "/info"                     // GET → Info
	PathCommands = Root + "/commands"                 // POST CommandRequest → frames
	PathCommand  = Root + "/commands/{id}"            // GET ?stdout=&stderr= → frames; DELETE stops it
	PathStdin    = Root + "/commands/{id}/stdin"      // POST ?offset=&close=&client= raw bytes → StdinAnswer
	PathTerminal = Root + "/commands/{id}/terminal"   // POST ?columns=&rows=&take=&client=
	PathSignal   = Root + "/commands/{id}/signal"     // POST ?name=TERM
	PathFile     = Root + "/file"                     // GET, PUT, DELETE ?path=
	PathAppend   = Root + "/file/append"              // POST ?path= raw bytes → File
	PathEdit     = Root + "/file/edit"                // POST ?path= sandbox.Edit → Edited
	PathList     = Root + "/list"                     // GET ?path= → [File]
	PathStat     = Root + "/stat"                     // GET ?path= → File
	PathDir      = Root + "/directory"                // PUT ?path=&mode= → File
	PathMove     = Root + "/move"                     // POST ?from=&to=&replace= → File
	PathMode     = Root + "/mode"                     // PUT ?path=&mode=&owner=&group=&recursive= → File
	PathGlob     = Root + "/glob"                     // POST ?path= sandbox.GlobQuery → GlobResult
	PathGrep     = Root + "/grep"                     // POST ?path= sandbox.GrepQuery → GrepResult
	PathTree     = Root + "/tree"                     // GET ?path= → tar; PUT ?path= tar → sandbox.Uploaded
	PathOps      = Root + "/operations"               // GET filter → history.Page; POST an operation to import, with QueryUntold unless its client has told of it
	PathOp       = Root + "/operations/{id}"          // GET → history.Operation
	PathOutput   = Root + "/operations/{id}/output"   // GET ?stream=&offset=&length= → bytes
	PathMoments  = Root + "/operations/{id}/terminal" // GET → lines, as history.EncodeTerminal writes them
	PathChanges  = Root + "/changes"                  // GET ?after=&limit=&wait= → history.Feed
	PathReaders  = Root + "/consumers"                // GET → [history.ConsumerState]
	PathAck      = Root + "/consumers/{id}"           // PUT ?seq=
	PathPrune    = Root + "/prune"                    // POST → history.Pruned
	PathConfig   = Root + "/history/config"           // GET → history.StoredConfig; PUT history.ConfigChange → the same
	PathPort     = Root + "/ports/{port}"             // POST, full duplex: a TCP connection to that port inside
	PathTunnel   = Root + "/tunnel"                   // GET, upgrades to a WebSocket: HTTP/2 within, for all of these routes
)

// What a tunnel is for: a body of more bytes, and a request of more at once,
// go by themselves. Who reads a larger file within one is answered 421.
const (
	TunnelBytes   = 1 << 20
	TunnelStreams = 64
)

// Info is what a recorder says of itself.
type Info struct {
	Protocol  int       `json:"protocol"`
	Version   string    `json:"version"`
	PID       int       `json:"pid"`
	OS        string    `json:"os"`
	Arch      string    `json:"arch"`
	Workdir   string    `json:"workdir"`
	StartedAt time.Time `json:"started_at"`
	Recording bool      `json:"recording"` // false: history is off
	SandboxID string    `json:"sandbox_id"`
	Running   int       `json:"running"` // commands
}

// CommandRequest asks for a command.
type CommandRequest struct {
	ID        string            `json:"id"`
	Line      string            `json:"line,omitempty"`
	Args      []string          `json:"args,omitempty"`
	Dir       string            `json:"cwd,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	TimeoutMS int64             `json:"timeout_ms,omitempty"`
	GraceMS   int64             `json:"grace_ms,omitempty"`
	Stdin     bool              `json:"stdin,omitempty"` // input follows on PathStdin
	Detached  bool              `json:"detached,omitempty"`
	User      *sandbox.User     `json:"user,omitempty"`
	// Terminal runs it on a terminal of this size.
	Terminal *sandbox.TerminalSize `json:"terminal,omitempty"`
}

// MaxRequestBytes bounds the body of a CommandRequest: a command of 4 MiB and
// an environment of 1 MiB, escaped.
const MaxRequestBytes = 32 << 20

// NewCommandRequest writes cmd for the wire.
func NewCommandRequest(cmd *sandbox.Command) *CommandRequest {
	return &CommandRequest{
		ID: cmd.ID, Line: cmd.Line, Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Env,
		TimeoutMS: ceilMS(cmd.Timeout), GraceMS: ceilMS(cmd.Grace),
		Stdin: cmd.Stdin != nil || cmd.StdinPipe, Detached: cmd.Detached, Terminal: cmd.Terminal, User: cmd.User,
	}
}

// Command reads the request back. Input comes by Process.Stdin.
func (r *CommandRequest) Command() *sandbox.Command {
	return &sandbox.Command{
		ID: r.ID, Line: r.Line, Args: r.Args, Dir: r.Dir, Env: r.Env,
		Timeout: time.Duration(r.TimeoutMS) * time.Millisecond,
		Grace:   time.Duration(r.GraceMS) * time.Millisecond, Detached: r.Detached, StdinPipe: r.Stdin,
		Terminal: r.Terminal, User: r.User,
	}
}

// StdinAnswer tells how much input the command's pipe has taken in all.
type StdinAnswer struct {
	Offset int64 `json:"offset"`
}

// Start is the payload of FrameStart.
type Start struct {
	ID        string    `json:"id"`
	StartedAt time.Time `json:"started_at"`
	Recording bool      `json:"recording"`
}

// Path fills in a route: Path(PathCommand, id).
func Path(route string, value string) string {
	for i := range route {
		if route[i] == '{' {
			for j := i; j < len(route); j++ {
				if route[j] == '}' {
					return route[:i] + url.PathEscape(value) + route[j+1:]
				}
			}
		}
	}
	return route
}

func ceilMS(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Result is a sandbox.Result as FrameExit carries it, without the output.
type Result struct {
	OperationID string            `json:"operation_id"`
	Status      sandbox.Status    `json:"status"`
	ExitCode    int               `json:"exit_code"`
	Signal      string            `json:"signal,omitempty"`
	StdoutBytes int64             `json:"stdout_bytes"`
	StderrBytes int64             `json:"stderr_bytes"`
	StartedAt   time.Time         `json:"started_at"`
	DurationUS  int64             `json:"duration_us"`
	Reason      string            `json:"reason,omitempty"`
	Recording   sandbox.Recording `json:"recording"`
}

// EncodeResult writes the payload of FrameExit.
func EncodeResult(r *sandbox.Result) []byte {
	b, err := json.Marshal(&Result{
		OperationID: r.OperationID, Status: r.Status, ExitCode: r.ExitCode, Signal: r.Signal,
		StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes, StartedAt: r.StartedAt,
		DurationUS: r.Duration.Microseconds(), Reason: r.Reason, Recording: r.Recording,
	})
	if err != nil {
		panic(err) // plain values only
	}
	return b
}

// DecodeResult reads the payload of FrameExit.
func DecodeResult(b []byte) (*sandbox.Result, error) {
	var r Result
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, malformed("exit frame", err)
	}
	return &sandbox.Result{
		OperationID: r.OperationID, Status: r.Status, ExitCode: r.ExitCode, Signal: r.Signal,
		StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes, StartedAt: r.StartedAt,
		Duration: time.Duration(r.DurationUS) * time.Microsecond, Reason: r.Reason, Recording: r.Recording,
	}, nil
}
