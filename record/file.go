package record

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"io/fs"
	"maps"
	"strings"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// asked is an act on a file as it is asked for.
type asked struct {
	op     string // for errors
	kind   string // of the operation
	id     string
	path   string
	old    string // the former path, where there is one
	fields map[string]any
}

// begun is an act on a file under way.
type begun struct {
	*act
	earlier *history.Operation // that had this id before; then there is no act
	turn    *turn
	exit    func() // lets the session close
}

// leave ends the act's turn.
func (b *begun) leave() {
	b.turn.unlock()
	b.turn.done()
	b.exit()
}

// enact begins an act when its turn has come.
func (s *Session) enact(ctx context.Context, q *asked) (*begun, error) {
	if err := checkPath("path", q.path); err != nil {
		return nil, err
	}
	exit, err := s.enter(q.op)
	if err != nil {
		return nil, err
	}
	if !s.claimAct(q.id) {
		exit()
		return nil, underWay(q.kind, q.id)
	}
	b := &begun{exit: func() { s.endAct(q.id); exit() }}
	var waited error
	if b.turn, waited = s.fileTurn(ctx, q); waited != nil {
		if b.turn = (&turn{func() {}, func() {}}); !late(waited) {
			b.leave()
			return nil, waited
		}
		ctx = context.WithoutCancel(ctx)
	}
	if b.act, b.earlier, err = s.beginFile(ctx, q); err != nil {
		b.leave()
		return nil, err
	}
	if waited != nil && b.act != nil {
		defer b.leave()
		return nil, b.fail(ctx, waited)
	}
	return b, nil
}

// claimAct takes an id that was asked for, unless an act under it has not ended:
// who repeats it need not wait for its turn to learn that.
func (s *Session) claimAct(opID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.acts[opID] {
		return false
	}
	if opID != "" {
		s.acts[opID] = true
	}
	return true
}

func (s *Session) endAct(opID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.acts, opID)
}

func underWay(kind, opID string) error {
	return &sandbox.Error{Op: kind, Code: sandbox.CodeUnavailable, Retryable: true, Message: "operation " + opID + " is still under way"}
}

func (s *Session) beginFile(ctx context.Context, q *asked) (*act, *history.Operation, error) {
	full := sandbox.Resolve(s.workdir(), q.path)
	fields := map[string]any{"path": full}
	maps.Copy(fields, q.fields)
	a, earlier, err := s.begin(ctx, &history.Operation{
		ID: q.id, Type: q.kind, Request: history.EncodeRequest(fields),
		File: &history.File{Path: full, Change: strings.TrimPrefix(q.kind, "file.")},
	})
	if a != nil && q.old != "" {
		a.file.OldPath = sandbox.Resolve(s.workdir(), q.old)
	}
	if a != nil {
		a.trace = s.effects.beginAct(q.kind, full)
	}
	return a, earlier, err
}

func checkPath(field, name string) error {
	if strings.ContainsRune(name, 0) || name == "" {
		return sandbox.Invalid(field, "must not be empty or contain NUL bytes")
	}
	return nil
}

func (a *act) succeed(ctx context.Context, fields map[string]any) {
	a.finish(ctx, &history.End{
		Status: sandbox.Succeeded, Result: history.Encode(fields), File: a.file,
		OutputComplete: true, Recording: sandbox.RecordedWhole,
	})
}

// Read implements sandbox.Session. The operation ends when the reader is
// closed. The same id again reads again, and records nothing.
func (s *Session) Read(ctx context.Context, name string, opts *sandbox.ReadOptions) (io.ReadCloser, error) {
	if opts == nil {
		opts = &sandbox.ReadOptions{}
	}
	fields := map[string]any{}
	if opts.Offset != 0 || opts.Length != 0 {
		fields["offset"], fields["length"] = opts.Offset, opts.Length
	}
	if opts.Line != 0 || opts.Lines != 0 {
		fields["line"], fields["lines"] = opts.Line, opts.Lines
	}
	b, err := s.enact(ctx, &asked{op: "read file", kind: history.FileRead, id: opts.ID, path: name, fields: fields})
	if err != nil {
		return nil, err
	}
	defer b.leave()
	inner, err := s.inner.Read(ctx, name, opts)
	if b.earlier != nil {
		return inner, err
	}
	if err != nil {
		return nil, b.fail(ctx, err)
	}
	return b.reader(ctx, inner, sha256.New()), nil
}

// reader returns what is read of an open file or a tree. It keeps its place
// among those who read until it is closed; the paths are free again.
func (b *begun) reader(ctx context.Context, inner io.ReadCloser, sum hash.Hash) *reader {
	r := &reader{ctx: ctx, act: b.act, inner: inner, sum: sum, part: rangeOf(inner), leave: b.turn.done}
	b.turn.done = func() {}
	return r
}

// reader counts and hashes what is read.
type reader struct {
	leave func()
	ctx   context.Context //nolint:containedctx // the operation's, whose end is recorded at Close
	act   *act
	inner io.ReadCloser
	sum   hash.Hash // nil: what is read is not the content of a file
	part  part
	n     int64
	whole bool
	err   error
	done  bool
}

// Info implements sandbox.Described.
func (r *reader) Info() *sandbox.FileInfo {
	if d, ok := r.inner.(sandbox.Described); ok {
		return d.Info()
	}
	return nil
}

// part is which bytes of a file are read.
type part struct{ offset, length int64 }

func rangeOf(f any) part {
	var p part
	if r, ok := f.(sandbox.Ranged); ok {
		p.offset, p.length = r.Range()
	}
	return p
}

// Range implements sandbox.Ranged.
func (r *reader) Range() (offset, length int64) { return r.part.offset, r.part.length }

func (r *reader) Read(b []byte) (int, error) {
	n, err := r.inner.Read(b)
	r.n += int64(n)
	if r.sum != nil {
		r.sum.Write(b[:n])
	}
	switch err {
	case nil:
	case io.EOF:
		r.whole = true
	default:
		r.err = err
	}
	return n, err
}

func (r *reader) Close() error {
	if r.done {
		return nil
	}
	r.done = true
	defer r.leave()
	err := r.inner.Close()
	if r.err != nil {
		_ = r.act.fail(r.ctx, r.err) // the reader has been told
		return err
	}
	fields := map[string]any{"path": r.act.file.Path, "size": r.n, "complete": r.whole}
	if r.whole && r.sum != nil {
		fields["content_hash"] = hex.EncodeToString(r.sum.Sum(nil))
	}
	r.act.succeed(r.ctx, fields)
	return err
}

// Write implements sandbox.Session.
func (s *Session) Write(ctx context.Context, name string, content io.Reader, opts *sandbox.WriteOptions) (*sandbox.FileInfo, error) {
	return s.WriteWith(ctx, name, content, opts, nil)
}

// WriteWith is Write and SetMode as one act; with may be nil.
func (s *Session) WriteWith(ctx context.Context, name string, content io.Reader, opts *sandbox.WriteOptions, with *sandbox.ModeOptions) (*sandbox.FileInfo, error) {
	if opts == nil {
		opts = &sandbox.WriteOptions{}
	}
	fields := map[string]any{}
	if opts.IfHash != "" {
		fields["expected_hash"] = opts.IfHash
	}
	if opts.Mode != 0 {
		fields["mode"] = uint32(opts.Mode)
	}
	maps.Copy(fields, modeFields(with))
	b, err := s.enact(ctx, &asked{op: "write file", kind: history.FileWrite, id: opts.ID, path: name, fields: fields})
	if err != nil {
		return nil, err
	}
	defer b.leave()
	if b.earlier != nil {
		return writtenBefore(b.earlier)
	}
	from := &source{Reader: content}
	info, err := s.inner.Write(ctx, name, from, opts)
	if err != nil {
		return nil, b.fail(ctx, from.fault("write file", err))
	}
	if err := s.setMode(ctx, name, with, info); err != nil {
		return nil, b.fail(ctx, err)
	}
	b.wrote(ctx, info, nil)
	return info, nil
}

// wrote records what an act has made of a file.
func (a *act) wrote(ctx context.Context, info *sandbox.FileInfo, also map[string]any) {
	after := info.Size
	a.written = info.Modified
	a.file.AfterHash, a.file.AfterSize = info.SHA256, &after
	a.file.Diff, a.file.DiffTruncated = info.Diff, info.DiffTruncated
	fields := map[string]any{"path": info.Path, "size": info.Size, "mode": uint32(info.Mode.Perm())}
	maps.Copy(fields, also)
	if info.SHA256 != "" {
		fields["content_hash"] = info.SHA256
	}
	if info.Previous != "" || info.OldSize > 0 {
		before := info.OldSize
		a.file.BeforeHash, a.file.BeforeSize = info.Previous, &before
		fields["previous_hash"], fields["previous_size"] = info.Previous, info.OldSize
	}
	if info.DiffTruncated {
		fields["diff_truncated"] = true
	}
	a.succeed(ctx, fields)
}

// source tells a fault of the content from one of the file.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// fault is the error of an act whose content may have been cut.
func (s *source) fault(op string, err error) error {
	if s.err == nil {
		return err
	}
	return &sandbox.Error{
		Op: op, Code: sandbox.CodeCancelled, Err: s.err,
		Message: "the content could not be read to its end, so the file is as it was",
	}
}

// writtenBefore is the result of a write that was asked for twice.
func writtenBefore(op *history.Operation) (*sandbox.FileInfo, error) {
	if err := failedBefore(op); err != nil {
		return nil, err
	}
	var result struct {
		sandbox.FileInfo
		Perm uint32 `json:"mode"`
	}
	if err := json.Unmarshal(op.Result, &result); err != nil {
		return nil, &sandbox.Error{Op: "read result of " + op.ID, Code: sandbox.CodeHistory, Err: err}
	}
	result.Modified, result.Mode = op.CompletedAt, fs.FileMode(result.Perm)
	if op.File != nil {
		result.Diff, result.DiffTruncated = op.File.Diff, op.File.DiffTruncated
	}
	return &result.FileInfo, nil
}

// failedBefore returns the error with which an operation ended the first time.
func failedBefore(op *history.Operation) error {
	switch op.Status {
	case sandbox.Succeeded:
		return nil
	case sandbox.Started:
		return underWay(op.Type, op.ID)
	case sandbox.Lost:
		return &sandbox.Error{Op: op.Type, Code: sandbox.CodeInterrupted, Message: "the outcome of operation " + op.ID + " is not known; look at the file"}
	}
	var result struct {
		Error struct {
			Code    sandbox.Code `json:"code"`
			Message string       `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(op.Result, &result) // without it, the code below is empty
	if result.Error.Code == "" {
		result.Error.Code = sandbox.CodeInternal
	}
	return &sandbox.Error{Code: result.Error.Code, Message: result.Error.Message}
}

// List implements sandbox.Session.
func (s *Session) List(ctx context.Context, name string) ([]*sandbox.FileInfo, error) {
	return s.list(ctx, "", name)
}

func (s *Session) list(ctx context.Context, opID, name string) ([]*sandbox.FileInfo, error) {
	b, err := s.enact(ctx, &asked{op: "list directory", kind: history.FileList, id: opID, path: name})
	if err != nil {
		return nil, err
	}
	defer b.leave()
	list, err := s.inner.List(ctx, name)
	if err != nil {
		return nil, b.fail(ctx, err)
	}
	b.succeed(ctx, map[string]any{"path": b.file.Path, "count": len(list)})
	return list, nil
}

// Remove implements sandbox.Session.
func (s *Session) Remove(ctx context.Context, name string, opts *sandbox.RemoveOptions) error {
	if opts == nil {
		opts = &sandbox.RemoveOptions{}
	}
	fields := map[string]any{"recursive": opts.Recursive}
	b, err := s.enact(ctx, &asked{op: "remove", kind: history.FileDelete, id: opts.ID, path: name, fields: fields})
	if err != nil {
		return err
	}
	defer b.leave()
	if b.earlier != nil {
		return failedBefore(b.earlier)
	}
	if err := s.inner.Remove(ctx, name, opts); err != nil {
		return b.fail(ctx, err)
	}
	b.succeed(ctx, map[string]any{"path": b.file.Path})
	return nil
}
