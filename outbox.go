package glassbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox"
)

// outbox keeps the records of what happens while there is no recorder: the
// creation of a sandbox, and its end, and what is done with it from outside, as
// a pause. A record is a file, written whole before and after the act. It goes
// into the sandbox's own history as soon as that can be reached; that of a
// creation that failed, or of an end, has no history to go to and stays here
// for its retention.
type outbox struct {
	dir  string
	mask *redact.Masker // of what is written
}

// Pending is a record that stands in no sandbox's own history.
type Pending struct {
	Sandbox   string     `json:"sandbox_id,omitempty"` // empty: none was made
	Operation *Operation `json:"operation"`
}

// outboxRetention is that of a deleted sandbox's history on the local runtime.
const outboxRetention = 7 * 24 * time.Hour

// entry is one record in the outbox.
type entry struct {
	Pending
	mask *redact.Masker
	file string
	PID  int `json:"pid"` // of who writes it
}

// begin writes the record of an act that starts now.
func (o *outbox) begin(ctx context.Context, source, opType, sandboxID string, request json.RawMessage) (*entry, error) {
	op := &history.Operation{
		ID: id.New(), Type: opType, Status: sandbox.Started, Actor: history.ActorFrom(ctx),
		Source: source, StartedAt: time.Now(),
	}
	op.Request, _ = o.mask.JSON(request)
	if op.Source == "" {
		op.Source = history.SourceSDK
	}
	if err := op.Actor.Validate(); err != nil {
		return nil, err
	}
	op.Actor.Mask(o.mask)
	e := &entry{Pending: Pending{sandboxID, op}, mask: o.mask, file: filepath.Join(o.dir, op.ID+".json"), PID: os.Getpid()}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return nil, e.fault(err)
	}
	return e, e.save()
}

func createRequest(spec *sandbox.Spec) json.RawMessage {
	names := map[string]string{}
	for name := range spec.Env {
		names[name] = "***"
	}
	fields := map[string]any{
		"image": spec.Image, "snapshot": spec.Snapshot, "workdir": spec.Workdir, "name": spec.Name, "metadata": spec.Metadata,
		"env": names, "limits": spec.Limits, "network": spec.Network, "timeout_seconds": spec.Timeout.Seconds(),
	}
	for name, value := range fields {
		switch v := value.(type) {
		case string:
			if v == "" {
				delete(fields, name)
			}
		case map[string]string:
			if len(v) == 0 {
				delete(fields, name)
			}
		case float64:
			if v == 0 {
				delete(fields, name)
			}
		}
	}
	return history.EncodeRequest(fields)
}

// failed records that the act was not done, or that nobody knows if it was.
func (e *entry) failed(err error) error {
	status := sandbox.Unsuccessful
	code := sandbox.CodeOf(err)
	switch code {
	case sandbox.CodeInterrupted:
		status = sandbox.Lost
	case sandbox.CodeCancelled:
		status = sandbox.Cancelled
	case sandbox.CodeTimeout:
		status = sandbox.TimedOut
	}
	e.end(status, map[string]any{"error": map[string]any{
		"code": string(code), "message": err.Error(),
	}})
	return e.save()
}

// done records that there is one, in its own history.
func (e *entry) done(ctx context.Context, box *Sandbox) error {
	e.Sandbox = box.ID()
	e.end(sandbox.Succeeded, map[string]any{"sandbox_id": box.ID(), "image": box.info.Image, "warnings": append([]string{}, box.info.Warnings...)})
	if err := e.save(); err != nil {
		return err
	}
	return e.deliver(ctx, box)
}

// ended records what came of an act on a sandbox that is there.
func (e *entry) ended(result map[string]any, err error) error {
	if err != nil {
		return e.failed(err)
	}
	if result == nil {
		result = map[string]any{}
	}
	result["sandbox_id"] = e.Sandbox
	e.end(sandbox.Succeeded, result)
	return e.save()
}

func (e *entry) end(status sandbox.Status, result map[string]any) {
	e.Operation.Status, e.Operation.CompletedAt = status, time.Now()
	e.Operation.Result, _ = e.mask.JSON(history.Encode(result))
	e.Operation.Duration = max(e.Operation.CompletedAt.Sub(e.Operation.StartedAt), 0)
	e.Operation.DurationMS = e.Operation.Duration.Milliseconds()
}

func (e *entry) deliver(ctx context.Context, box *Sandbox) error {
	if box.service.opts.HistoryMode == NoHistory {
		return drop(e.file)
	}
	err := box.History().Import(ctx, e.Operation)
	if errors.Is(err, sandbox.ErrUnsupported) { // made with its history off
		err = nil
	}
	if errors.Is(err, sandbox.ErrHistory) && box.service.opts.HistoryMode == BestEffort {
		return nil // it stays for the next Connect
	}
	if err != nil {
		return err
	}
	return drop(e.file)
}

// save writes the entry so that a crash leaves the old or the new one.
func (e *entry) save() error {
	text, err := json.Marshal(e)
	if err != nil {
		return e.fault(err)
	}
	f, err := os.CreateTemp(filepath.Dir(e.file), temporary+"*")
	if err != nil {
		return e.fault(err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), e.file)
	}
	if err != nil {
		return e.fault(errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// temporary begins the name of a file that is not yet an entry. One that is
// older than staleAfter was left by a crash.
const (
	temporary  = ".entry-"
	staleAfter = time.Hour
)

// deliver brings what is left for a sandbox into its history: of a program
// that died between the creation and the delivery. What cannot be read keeps
// nobody from working.
func (o *outbox) deliver(ctx context.Context, box *Sandbox) error {
	entries, err := o.load()
	if err != nil {
		box.service.opts.Logger.WarnContext(ctx, "records in the outbox are left out", "error", err)
	}
	for _, e := range entries {
		if e.Sandbox == box.ID() && history.Final(e.Operation.Status) { // a deletion that failed, too
			if err := e.deliver(ctx, box); err != nil {
				return err
			}
		}
	}
	return nil
}

// load returns the entries that can be read, together with what is wrong with
// the others. It removes what is kept no longer.
func (o *outbox) load() ([]*entry, error) {
	files, err := os.ReadDir(o.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, outboxError("read the outbox", err)
	}
	var list []*entry
	var faults error
	for _, f := range files {
		e, err := o.read(f)
		if e == nil {
			faults = errors.Join(faults, err)
			continue
		}
		if time.Since(e.Operation.StartedAt) > outboxRetention {
			faults = errors.Join(faults, drop(e.file))
			continue
		}
		list = append(list, e)
	}
	return list, faults
}

// read reads an entry, or returns none for a file that is no entry.
func (o *outbox) read(f fs.DirEntry) (*entry, error) {
	e := &entry{file: filepath.Join(o.dir, f.Name())}
	if strings.HasPrefix(f.Name(), temporary) {
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > staleAfter {
			return nil, drop(e.file)
		}
		return nil, nil
	}
	name, ok := strings.CutSuffix(f.Name(), ".json")
	if !ok || !id.Valid(name) {
		return nil, nil
	}
	if !f.Type().IsRegular() {
		return nil, outboxError("read the outbox", errors.New(e.file+" is no plain file"))
	}
	text, err := os.ReadFile(e.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // delivered meanwhile
	}
	if err == nil {
		err = json.Unmarshal(text, e)
	}
	if err == nil && !e.whole(name) {
		err = errors.New("it is no record of an operation")
	}
	if err != nil {
		return nil, outboxError("read the outbox", fmt.Errorf("the record in %s is left out: %w", e.file, err))
	}
	return e, nil
}

// drop removes what is kept no longer, or was by another program.
func drop(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return outboxError("clear the outbox", err)
	}
	return nil
}

// whole reports whether the entry is the record of an operation.
func (e *entry) whole(id string) bool {
	op := e.Operation
	return op != nil && op.ID == id && op.Type != "" && op.Status != "" && !op.StartedAt.IsZero()
}

// ListPending returns what was done from this machine and stands in no
// sandbox's own history, oldest first. An act whose program died is unknown.
// Records that cannot be read are named by the error, which comes together
// with the others.
func ListPending(stateDir string) ([]Pending, error) {
	dir, err := StateDir(stateDir)
	if err != nil {
		return nil, err
	}
	entries, faults := (&outbox{dir: filepath.Join(dir, "outbox")}).load()
	var list []Pending
	for _, e := range entries {
		op := e.Operation
		op.Duration = time.Duration(op.DurationMS) * time.Millisecond
		if op.Status == sandbox.Started && !alive(e.PID) {
			op.Status = sandbox.Lost
			op.Result = history.Encode(map[string]any{"reason": "the program that did this died before it saw the outcome"})
		}
		list = append(list, e.Pending)
	}
	return list, faults
}

// alive reports whether a process of this number runs.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// fault tells that an act cannot be recorded.
func (e *entry) fault(err error) error {
	act := e.Operation.Type
	switch act {
	case history.SandboxCreate:
		act = "creation"
	case history.SandboxDelete:
		act = "deletion"
	default:
		act = strings.TrimPrefix(act, "sandbox.")
	}
	return outboxError("record the "+act, err)
}

func outboxError(op string, err error) error {
	return &sandbox.Error{Op: op, Code: sandbox.CodeHistory, Err: err}
}
