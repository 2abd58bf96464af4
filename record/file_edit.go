package record

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

func unsupported(op string) error {
	return &sandbox.Error{Op: op, Code: sandbox.CodeUnsupported, Message: "the session beneath cannot do this"}
}

// Append implements sandbox.Editor.
func (s *Session) Append(ctx context.Context, name string, content io.Reader, opts *sandbox.WriteOptions) (*sandbox.FileInfo, error) {
	const op = "append to file"
	inner, ok := s.inner.(sandbox.Editor)
	if !ok {
		return nil, unsupported(op)
	}
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
	b, err := s.enact(ctx, &asked{op: op, kind: history.FileAppend, id: opts.ID, path: name, fields: fields})
	if err != nil {
		return nil, err
	}
	defer b.leave()
	if b.earlier != nil {
		return writtenBefore(b.earlier)
	}
	from := &source{Reader: content}
	info, err := inner.Append(ctx, name, from, opts)
	if err != nil {
		return nil, b.fail(ctx, from.fault(op, err))
	}
	b.wrote(ctx, info, nil)
	return info, nil
}

// Edit implements sandbox.Editor. The history keeps the diff; of the texts
// that were asked for it keeps one hash, by which a repeated request is known.
func (s *Session) Edit(ctx context.Context, name string, edit *sandbox.Edit) (*sandbox.Edited, error) {
	const op = "edit file"
	inner, ok := s.inner.(sandbox.Editor)
	if !ok {
		return nil, unsupported(op)
	}
	sum := sha256.Sum256([]byte(edit.Old + "\x00" + edit.New))
	fields := map[string]any{
		"is_edit": true, "all": edit.All, "old_size": len(edit.Old), "new_size": len(edit.New),
		"edit_hash": hex.EncodeToString(sum[:]),
	}
	if edit.IfHash != "" {
		fields["expected_hash"] = edit.IfHash
	}
	b, err := s.enact(ctx, &asked{op: op, kind: history.FileEdit, id: edit.ID, path: name, fields: fields})
	if err != nil {
		return nil, err
	}
	defer b.leave()
	if b.earlier != nil {
		return editedBefore(b.earlier)
	}
	done, err := inner.Edit(ctx, name, edit)
	if err != nil {
		return nil, b.fail(ctx, err)
	}
	b.wrote(ctx, &done.FileInfo, map[string]any{"is_edit": true, "replaced": done.Replaced})
	return done, nil
}

// editedBefore is the result of an edit that was asked for twice.
func editedBefore(op *history.Operation) (*sandbox.Edited, error) {
	info, err := writtenBefore(op)
	if err != nil {
		return nil, err
	}
	done := &sandbox.Edited{FileInfo: *info}
	var result struct {
		Replaced int `json:"replaced"`
	}
	if err := json.Unmarshal(op.Result, &result); err != nil {
		return nil, &sandbox.Error{Op: "read result of " + op.ID, Code: sandbox.CodeHistory, Err: err}
	}
	done.Replaced = result.Replaced
	return done, nil
}
