package execd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The Python package agent-sandbox-backends records what it does by a program
// of its own, which it uploads and runs by commands of execd's wire; another
// unpacks its uploads. Here these
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
	maxHelperFile   = 16 << 20
	maxHelperFiles  = 64
	maxHelperBytes  = 32 << 20  // of all together
	maxArchiveBytes = 512 << 20 // of all together, on the disk
)

// helper answers the calls.
type helper struct {
	session Announcer
	store   history.Store // nil: nothing is recorded
	limit   time.Duration // for a client that takes no answer
	whose   func(ctx context.Context) (*Identity, error)

	spool string // a directory for archives

	mu     sync.Mutex
	files  []*helperUpload    // oldest first
	staged map[string]*staged // by the directory that the package names
	placed map[string]placed  // by operation, what it tells of output
}

// helperUpload is a file in memory or, if it is an archive, on the disk.
type helperUpload struct {
	name string
	data []byte
	disk *os.File // without a name; nil: in memory
	size int64
}

func (f *helperUpload) content() io.Reader {
	if f.disk != nil {
		return io.NewSectionReader(f.disk, 0, f.size)
	}
	return bytes.NewReader(f.data)
}

func (f *helperUpload) close() {
	if f.disk != nil {
		_ = f.disk.Close() // nothing of it is kept
	}
}

func newHelper(session Session, store history.Reader, opts *Options) *helper {
	announcer, ok := session.(Announcer)
	if !ok || opts.Whose == nil {
		return nil
	}
	whole, _ := store.(history.Store) // nil where nothing is recorded
	return &helper{
		session: announcer, store: whole, limit: opts.Idle, whose: opts.Whose, spool: opts.Spool,
		placed: map[string]placed{}, staged: map[string]*staged{},
	}
}

// announced takes what was said about an act that begins now; empty: nothing.
func (h *helper) announced(kind, subject string) string {
	if h == nil {
		return ""
	}
	return h.session.Announced(kind, subject)
}

// owns reports whether a file is one of the package's own.
func (h *helper) owns(name string) bool {
	return h != nil && (helperFile.MatchString(name) || uploadFile.MatchString(name) || uploadArchive.MatchString(name))
}

// take keeps a file of the package for the call that names it.
func (h *helper) take(name string, content io.Reader) error {
	f, err := h.read(name, content)
	if err != nil {
		return err
	}
	h.drop(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files = append(h.files, f)
	for h.tooMuch() { // its maker has gone
		h.files[0].close()
		h.files = slices.Delete(h.files, 0, 1)
	}
	return nil
}

func (h *helper) read(name string, content io.Reader) (*helperUpload, error) {
	f, limit := &helperUpload{name: name}, int64(maxHelperFile)
	var to io.Writer
	var inMemory bytes.Buffer
	if to = &inMemory; uploadArchive.MatchString(name) {
		disk, err := nameless(h.spool)
		if err != nil {
			return nil, err
		}
		f.disk, to, limit = disk, disk, maxArchiveBytes
	}
	var err error
	f.size, err = io.Copy(to, io.LimitReader(content, limit+1))
	f.data = inMemory.Bytes()
	switch {
	case err != nil:
		err = &sandbox.Error{Op: "read form", Code: sandbox.CodeInvalid, Field: "body", Err: err}
	case f.size > limit:
		err = &sandbox.Error{Op: "write file", Code: sandbox.CodeTooLarge, Message: fmt.Sprintf("%s may have %d MiB", name, limit>>20)}
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// tooMuch reports whether the oldest file has to go.
func (h *helper) tooMuch() bool {
	var inMemory, onDisk int64
	for _, f := range h.files {
		if f.disk != nil {
			onDisk += f.size
		} else {
			inMemory += f.size
		}
	}
	return len(h.files) > maxHelperFiles || inMemory > maxHelperBytes || onDisk > maxArchiveBytes
}

func (h *helper) drop(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files = slices.DeleteFunc(h.files, func(f *helperUpload) bool {
		if f.name == name {
			f.close()
		}
		return f.name == name
	})
}

func (h *helper) find(name string) (*helperUpload, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.files {
		if f.name == name {
			return f, nil
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
		events = append(events, &event{Type: "stderr", Text: call.name + err.Error()})
	}
	_ = out.send(append(events, last)...) // who is gone asks again
	return true
}

// helperCall is a call that was recognised.
type helperCall struct {
	do   func(ctx context.Context, h *helper) (stdout string, err error)
	name string // stands before an error
}

func readHelperCall(line string) *helperCall {
	words, ok := shellWords(line)
	if !ok || len(words) < 5 || words[0] != "python3" {
		return nil
	}
	switch {
	case words[1] == helperProgram && words[2] == "--database" && words[3] == helperDatabase:
		return newHelperCall(helperVerbs, words[4:], (*helper).run, "history-helper: ")
	case words[1] == uploadProgram:
		return newHelperCall(uploadVerbs, words[2:], (*helper).runUpload, "")
	case len(words) == 7 && words[1] == "-c" && words[2] == helperInstall &&
		(words[4] == helperProgram && words[5] == helperVersion || words[4] == uploadProgram && words[5] == uploadVersion):
		return &helperCall{func(_ context.Context, h *helper) (string, error) { return "", h.install(words[3], words[6]) }, ""}
	}
	return nil
}

type helperRun func(h *helper, ctx context.Context, verb *helperVerb, flags map[string]string) (string, error)

func newHelperCall(verbs map[string]*helperVerb, words []string, run helperRun, name string) *helperCall {
	verb, ok := verbs[words[0]]
	if !ok {
		return nil
	}
	flags, ok := verb.read(words[1:])
	if !ok {
		return nil
	}
	return &helperCall{func(ctx context.Context, h *helper) (string, error) { return run(h, ctx, verb, flags) }, name}
}

// install looks whether the helper came as it was sent. It is not kept: its
// calls are answered.
func (h *helper) install(name, sum string) error {
	f, err := h.find(name)
	if err != nil {
		return err
	}
	if got, err := sumOf(f.content()); err != nil || got != sum {
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
	f, err := h.find(name)
	if err != nil {
		return err
	}
	return json.NewDecoder(f.content()).Decode(to)
}
