package execd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// helperBatch is what the package tells: records of operations.
type helperBatch struct {
	ID      string         `json:"batch_id"`
	Version int            `json:"schema_version"`
	Records []helperRecord `json:"records"`
}

type helperRecord struct {
	Type   string        `json:"type"`
	ID     string        `json:"event_id"`
	Event  helperEvent   `json:"event"`
	Chunks []helperChunk `json:"chunks"`
}

type helperEvent struct {
	ID        string          `json:"event_id"`
	Type      string          `json:"operation_type"`
	Source    string          `json:"source"`
	Status    sandbox.Status  `json:"status"`
	Started   string          `json:"occurred_at"`
	Completed string          `json:"completed_at"`
	Request   json.RawMessage `json:"request"`
	Result    json.RawMessage `json:"result"`
	Actor     struct {
		Type        string `json:"actor_type"`
		ID          string `json:"actor_id"`
		Thread      string `json:"thread_id"`
		Run         string `json:"run_id"`
		Correlation string `json:"correlation_id"`
	} `json:"actor"`
	Command *struct {
		Line     string            `json:"command"`
		Dir      string            `json:"cwd"`
		Timeout  int64             `json:"timeout_ms"`
		ExitCode *int              `json:"exit_code"`
		Whole    *bool             `json:"output_complete"`
		State    sandbox.Recording `json:"history_storage_state"`
	} `json:"command"`
	File *struct {
		Path       string `json:"path"`
		OldPath    string `json:"old_path"`
		Change     string `json:"change_type"`
		BeforeHash string `json:"before_hash"`
		AfterHash  string `json:"after_hash"`
		BeforeSize *int64 `json:"before_size"`
		AfterSize  *int64 `json:"after_size"`
		Diff       string `json:"diff_data"`
		Whole      *int   `json:"diff_complete"`
	} `json:"file_operation"`
}

type helperChunk struct {
	Stream   sandbox.Stream `json:"stream"`
	Index    int            `json:"chunk_index"`
	Data     []byte         `json:"data_base64"`
	Encoding string         `json:"encoding"`
}

// placed is the end of the output that was told of an operation.
type placed map[sandbox.Stream]place

// place is where the next chunk of a stream belongs.
type place struct {
	next int   // its index
	size int64 // of all before it
}

func helperApply(ctx context.Context, h *helper, flags map[string]string) (any, error) {
	var batch helperBatch
	if err := h.payload(flags["--batch-file"], &batch); err != nil {
		return nil, err
	}
	if batch.Version != history.FormatVersion || batch.ID == "" || len(batch.Records) == 0 {
		return nil, errors.New("apply envelope requires schema_version 1, batch_id and records")
	}
	for i := range batch.Records {
		r := &batch.Records[i]
		var err error
		switch r.Type {
		case "operation_started":
			err = h.start(ctx, &r.Event)
		case "command_output":
			err = h.output(ctx, r)
		case "operation_completed":
			err = h.complete(ctx, &r.Event)
		case "storage_state_changed": // is told with the end
		default:
			err = errors.New("unsupported record type: " + r.Type)
		}
		if err != nil {
			return nil, err
		}
	}
	return map[string]any{"batch_id": batch.ID, "records_applied": len(batch.Records)}, nil
}

func (h *helper) start(ctx context.Context, e *helperEvent) error {
	at, err := history.ParseTime(e.Started)
	if err != nil {
		return fmt.Errorf("occurred_at: %w", err)
	}
	fields := map[string]any{}
	if len(e.Request) > 0 && json.Unmarshal(e.Request, &fields) != nil {
		return errors.New("request must be an object")
	}
	if f := e.File; f != nil && f.Path == "" && e.Type == history.FileUpload {
		f.Path, _ = fields["target"].(string)
	}
	subject := subjectOf(e, fields)
	if source := e.Source; source == "" || source == history.SourceExecd {
		e.Source = history.SourceSDK
	}
	op := &history.Operation{
		ID: e.ID, Type: e.Type, Source: e.Source, StartedAt: at, Request: history.EncodeRequest(fields),
		Actor: history.Actor{
			Type: e.Actor.Type, ID: e.Actor.ID, Thread: e.Actor.Thread, Run: e.Actor.Run, Correlation: e.Actor.Correlation, Source: e.Source,
		},
	}
	if c := e.Command; c != nil {
		op.Command = &history.Command{Line: c.Line, Dir: c.Dir, TimeoutMS: c.Timeout, OutputComplete: true, Recording: sandbox.RecordedWhole}
	}
	if f := e.File; f != nil {
		op.File = &history.File{Path: f.Path, OldPath: f.OldPath, Change: f.Change, BeforeHash: f.BeforeHash, BeforeSize: f.BeforeSize}
	}
	return h.session.Announce(ctx, op, subject)
}

// subjectOf is what the act that does an operation will be asked for.
func subjectOf(e *helperEvent, request map[string]any) string {
	switch {
	case e.Command != nil:
		dir, _ := request["cwd"].(string)
		return commandSubject(e.Command.Line, dir)
	case e.File != nil:
		return e.File.Path
	}
	return ""
}

// commandSubject tells commands apart, as they are asked for.
func commandSubject(line, dir string) string { return line + "\x00" + dir }

// output takes output in the order of its chunks. What was told before is
// passed over.
func (h *helper) output(ctx context.Context, r *helperRecord) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	ends, ok := h.placed[r.ID]
	if !ok {
		op, err := h.store.Get(ctx, r.ID)
		if err != nil {
			return err
		}
		ends = placed{}
		if c := op.Command; c != nil {
			ends[sandbox.Stdout], ends[sandbox.Stderr] = place{size: c.StdoutBytes}, place{size: c.StderrBytes}
		}
	}
	next := maps.Clone(ends)
	var chunks []sandbox.Chunk
	for _, c := range r.Chunks {
		end := next[c.Stream]
		switch {
		case c.Stream != sandbox.Stdout && c.Stream != sandbox.Stderr:
			return errors.New("stream must be stdout or stderr")
		case c.Encoding != "" && c.Encoding != "identity":
			return errors.New("output must come as it is, not packed")
		case c.Index < end.next:
			continue
		}
		chunks = append(chunks, sandbox.Chunk{Stream: c.Stream, Offset: end.size, Time: time.Now(), Data: c.Data})
		end.next, end.size = c.Index+1, end.size+int64(len(c.Data))
		next[c.Stream] = end
	}
	if len(chunks) == 0 {
		return nil
	}
	err := h.session.AnnouncedOutput(ctx, r.ID, chunks)
	if err == nil {
		if len(h.placed) >= maxPlaced {
			clear(h.placed)
		}
		h.placed[r.ID] = next
	}
	return err
}

// maxPlaced bounds what is remembered of operations that nobody completes.
const maxPlaced = 1024

func (h *helper) complete(ctx context.Context, e *helperEvent) error {
	at, err := history.ParseTime(e.Completed)
	if err != nil {
		return fmt.Errorf("completed_at: %w", err)
	}
	end := &history.End{Status: e.Status, At: at, Result: e.Result, OutputComplete: true, Recording: sandbox.RecordedWhole}
	if string(end.Result) == "null" {
		end.Result = nil
	}
	if c := e.Command; c != nil {
		end.ExitCode = c.ExitCode
		end.OutputComplete = c.Whole == nil || *c.Whole
		if c.State != "" {
			end.Recording = c.State
		}
	}
	if f := e.File; f != nil {
		end.File = &history.File{
			BeforeHash: f.BeforeHash, AfterHash: f.AfterHash, BeforeSize: f.BeforeSize, AfterSize: f.AfterSize,
			Diff: f.Diff, DiffTruncated: f.Whole != nil && *f.Whole == 0,
		}
	}
	h.mu.Lock()
	delete(h.placed, e.ID)
	h.mu.Unlock()
	return h.session.Conclude(ctx, e.ID, end)
}

// helperInit adopts what the package says of the sandbox, if that is this one.
// What it wants to be kept holds where nobody else has said anything.
func helperInit(ctx context.Context, h *helper, flags map[string]string) (any, error) {
	var said struct {
		Version     int            `json:"schema_version"`
		ProviderKey string         `json:"provider_key"`
		SandboxID   string         `json:"sandbox_id"`
		InstanceID  string         `json:"sandbox_instance_id"`
		Config      map[string]any `json:"history_config"`
	}
	if err := h.payload(flags["--identity-file"], &said); err != nil {
		return nil, err
	}
	mine, err := h.whose(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case said.Version != history.FormatVersion:
		return nil, fmt.Errorf("unsupported schema version: %d", said.Version)
	case said.ProviderKey != mine.ProviderKey:
		return nil, errIdentity("provider_key")
	case said.SandboxID != mine.SandboxID:
		return nil, errIdentity("sandbox_id")
	case said.InstanceID != mine.InstanceID:
		return nil, errIdentity("sandbox_instance_id")
	}
	if err := h.adopt(ctx, said.Config); err != nil {
		return nil, err
	}
	return helperHealth(ctx, h, nil)
}

func errIdentity(field string) error {
	return errors.New("this is another sandbox's history: identity conflict for " + field)
}

func (h *helper) adopt(ctx context.Context, config map[string]any) error {
	c, ok := h.store.(history.Configurer)
	if !ok || len(config) == 0 {
		return nil
	}
	stored, err := c.Config(ctx)
	if err != nil {
		return err
	}
	defaults := (&history.Config{}).Values()
	if stored.Revision > 0 || !reflect.DeepEqual(stored.Config.Values(), defaults) {
		return nil
	}
	wanted, changes := history.ReadConfig(config).Values(), map[string]any{}
	for name, value := range wanted {
		if !reflect.DeepEqual(value, defaults[name]) {
			changes[name] = value
		}
	}
	if len(changes) == 0 {
		return nil
	}
	_, err = c.SetConfig(ctx, &history.ConfigChange{Changes: changes, By: "sdk:initialize"})
	if sandbox.CodeOf(err) == sandbox.CodeHistoryConflict {
		return nil // another was quicker
	}
	return err
}

func helperConfigSet(ctx context.Context, h *helper, flags map[string]string) (any, error) {
	var said struct {
		Changes map[string]any `json:"changes"`
		By      string         `json:"updated_by"`
	}
	if err := h.payload(flags["--config-file"], &said); err != nil {
		return nil, err
	}
	expected, err := helperNumber(flags, "--expected-revision")
	if err != nil {
		return nil, err
	}
	c, ok := h.store.(history.Configurer)
	if !ok {
		return nil, errNothingRecorded
	}
	stored, err := c.SetConfig(ctx, &history.ConfigChange{Changes: said.Changes, Expected: expected, By: strings.TrimSpace(said.By)})
	if err != nil {
		return nil, err
	}
	return configAnswer(stored), nil
}
