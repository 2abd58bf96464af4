package execd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The Python package agent-sandbox-backends records what it does by a program
// of its own, which it uploads and runs by commands of execd's wire. Here these
// calls are answered: what it uploads for them is kept in memory, no program is
// run, and what it tells goes into the one history. So nothing can be done
// under the cover of such a call, whoever makes it, and none of them is an
// operation. The rules stand in docs/compatibility.md.

// Announcer is a session that knows what another program records of what it
// is about to do.
type Announcer interface {
	Announce(ctx context.Context, op *history.Operation, subject string) error
	Announced(kind, subject string) (id string)
	AnnouncedOutput(ctx context.Context, id string, chunks []sandbox.Chunk) error
	Conclude(ctx context.Context, id string, end *history.End) error
	ListAnnounced(ctx context.Context, id, path string) ([]*sandbox.FileInfo, error)
}

// Identity tells whose history it is.
type Identity struct {
	ProviderKey string            `json:"provider_key"`
	SandboxID   string            `json:"sandbox_id"`
	InstanceID  string            `json:"sandbox_instance_id"`
	Name        string            `json:"sandbox_name"`
	Metadata    map[string]string `json:"sandbox_metadata"`
}

// The paths that the package uses.
const (
	helperRoot     = "/.agent-history"
	helperProgram  = helperRoot + "/bin/history-helper-v1.pyz"
	helperDatabase = helperRoot + "/history.sqlite3"
	helperVersion  = helperRoot + "/VERSION"
)

// helperInstall is the program with which it puts its helper in place.
const helperInstall = "import hashlib,os,pathlib,sys;" +
	"src,dst,version,expected=sys.argv[1:];" +
	"data=pathlib.Path(src).read_bytes();" +
	"actual=hashlib.sha256(data).hexdigest();" +
	"sys.exit('helper checksum mismatch') if actual!=expected else None;" +
	"pathlib.Path(dst).parent.mkdir(parents=True,exist_ok=True);" +
	"os.replace(src,dst);" +
	"pathlib.Path(version).write_text(expected+'\\n',encoding='utf-8')"

var helperFile = regexp.MustCompile(`\A/\.agent-history/tmp/(helper-[0-9a-f-]{36}\.pyz|(identity|request)-[0-9a-f-]{36}\.json)\z`)

const (
	maxHelperFile  = 16 << 20
	maxHelperFiles = 64
	maxHelperBytes = 32 << 20 // of all together
)

// helper answers the calls.
type helper struct {
	session Announcer
	store   history.Store // nil: nothing is recorded
	limit   time.Duration // for a client that takes no answer
	whose   func(ctx context.Context) (*Identity, error)

	mu     sync.Mutex
	files  []helperUpload // oldest first
	bytes  int
	placed map[string]placed // by operation, what it tells of output
}

type helperUpload struct {
	name string
	data []byte
}

func newHelper(session Session, store history.Reader, opts *Options) *helper {
	announcer, ok := session.(Announcer)
	if !ok || opts.Whose == nil {
		return nil
	}
	whole, _ := store.(history.Store) // nil where nothing is recorded
	return &helper{session: announcer, store: whole, limit: opts.Idle, whose: opts.Whose, placed: map[string]placed{}}
}

// announced takes what was said about an act that begins now; empty: nothing.
func (h *helper) announced(kind, subject string) string {
	if h == nil {
		return ""
	}
	return h.session.Announced(kind, subject)
}

// owns reports whether a file is one of the package's own.
func (h *helper) owns(name string) bool { return h != nil && helperFile.MatchString(name) }

// take keeps a file of the package for the call that names it.
func (h *helper) take(name string, content io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(content, maxHelperFile+1))
	if err != nil {
		return &sandbox.Error{Op: "read form", Code: sandbox.CodeInvalid, Field: "body", Err: err}
	}
	if len(data) > maxHelperFile {
		return &sandbox.Error{Op: "write file", Code: sandbox.CodeTooLarge, Message: name + " may have 16 MiB"}
	}
	h.drop(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files, h.bytes = append(h.files, helperUpload{name, data}), h.bytes+len(data)
	for len(h.files) > maxHelperFiles || h.bytes > maxHelperBytes { // its maker has gone
		h.bytes -= len(h.files[0].data)
		h.files = slices.Delete(h.files, 0, 1)
	}
	return nil
}

func (h *helper) drop(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files = slices.DeleteFunc(h.files, func(f helperUpload) bool {
		if f.name == name {
			h.bytes -= len(f.data)
		}
		return f.name == name
	})
}

func (h *helper) find(name string) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.files {
		if f.name == name {
			return f.data, nil
		}
	}
	return nil, errors.New("there is no " + name)
}

// answers answers a command, if it is a call of the package: such a line, word
// for word, and nothing else asked for. It reports whether it was one.
func (h *helper) answers(w http.ResponseWriter, r *http.Request, req *commandRequest) bool {
	if h == nil || req.Background || req.Dir != "" || len(req.Argv) > 0 || len(req.Env) > 0 || req.UID != nil || req.GID != nil {
		return false
	}
	call := readHelperCall(req.Command)
	if call == nil {
		return false
	}
	out := newEvents(w, h.limit)
	defer out.stop()
	began := time.Now()
	text, err := call.do(r.Context(), h)
	last := &event{Type: "execution_complete", Duration: time.Since(began).Milliseconds()}
	events := []*event{begin(id.New()), pong()}
	if text != "" {
		events = append(events, &event{Type: "stdout", Text: text})
	}
	if err != nil {
		last = &event{Type: "error", Error: &eventError{"CommandExecError", "1", []string{"exit status 1"}}}
		events = append(events, &event{Type: "stderr", Text: "history-helper: " + err.Error()})
	}
	_ = out.send(append(events, last)...) // who is gone asks again
	return true
}

// helperCall is a call that was recognised.
type helperCall struct {
	do func(ctx context.Context, h *helper) (stdout string, err error)
}

func readHelperCall(line string) *helperCall {
	words, ok := shellWords(line)
	switch {
	case !ok || len(words) < 5 || words[0] != "python3":
		return nil
	case words[1] == helperProgram && words[2] == "--database" && words[3] == helperDatabase:
		verb, ok := helperVerbs[words[4]]
		if !ok {
			return nil
		}
		flags, ok := verb.read(words[5:])
		if !ok {
			return nil
		}
		return &helperCall{func(ctx context.Context, h *helper) (string, error) { return h.run(ctx, verb, flags) }}
	case len(words) == 7 && words[1] == "-c" && words[2] == helperInstall && words[4] == helperProgram && words[5] == helperVersion:
		return &helperCall{func(_ context.Context, h *helper) (string, error) { return "", h.install(words[3], words[6]) }}
	}
	return nil
}

// install looks whether the helper came as it was sent. It is not kept: its
// calls are answered.
func (h *helper) install(name, sum string) error {
	data, err := h.find(name)
	if err != nil {
		return err
	}
	if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
		return errors.New("helper checksum mismatch")
	}
	return nil
}

// run does what a call asks for, and says it as the helper does.
func (h *helper) run(ctx context.Context, verb *helperVerb, flags map[string]string) (string, error) {
	answer := map[string]any{"schema_version": history.FormatVersion, "request_id": id.NewRandom(), "ok": true}
	data, err := any(nil), errNothingRecorded
	if h.store != nil {
		data, err = verb.do(ctx, h, flags)
	}
	if err != nil {
		delete(answer, "ok")
		answer["ok"], answer["error"] = false, map[string]any{"type": "HelperError", "message": err.Error()}
	} else {
		answer["data"] = data
	}
	return string(history.Encode(answer)), err
}

var errNothingRecorded = errors.New("nothing is recorded in this sandbox; make it with a history, or give the package HistoryMode.NONE")

// helperVerb is what the helper can do: its flags, and how it is done.
type helperVerb struct {
	flags []string // all of them have a value; those without ? must be there
	do    func(ctx context.Context, h *helper, flags map[string]string) (any, error)
}

// read reads --name value pairs.
func (v *helperVerb) read(words []string) (map[string]string, bool) {
	flags := map[string]string{}
	for len(words) > 0 {
		name := words[0]
		if slices.Contains(v.flags, name+"!") { // which has no value
			flags[name], words = "true", words[1:]
			continue
		}
		if len(words) < 2 || !slices.Contains(v.flags, name) && !slices.Contains(v.flags, name+"?") {
			return nil, false
		}
		flags[name], words = words[1], words[2:]
	}
	for _, name := range v.flags {
		if _, ok := flags[name]; !ok && name[len(name)-1] != '?' && name[len(name)-1] != '!' {
			return nil, false
		}
	}
	return flags, true
}

// payload reads a file that a flag names.
func (h *helper) payload(name string, to any) error {
	data, err := h.find(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}
