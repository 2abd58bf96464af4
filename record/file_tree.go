package record

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Stat implements sandbox.Tree.
func (s *Session) Stat(ctx context.Context, name string) (*sandbox.FileInfo, error) {
	const op = "stat file"
	inner, ok := s.inner.(sandbox.Tree)
	if !ok {
		return nil, unsupported(op)
	}
	b, err := s.enact(ctx, &asked{op: op, kind: history.FileStat, path: name})
	if err != nil {
		return nil, err
	}
	defer b.leave()
	info, err := inner.Stat(ctx, name)
	if err != nil {
		return nil, b.fail(ctx, err)
	}
	b.succeed(ctx, described(info))
	return info, nil
}

// MakeDir implements sandbox.Tree.
func (s *Session) MakeDir(ctx context.Context, name string, opts *sandbox.MakeDirOptions) (*sandbox.FileInfo, error) {
	return s.MakeDirWith(ctx, name, opts, nil)
}

// MakeDirWith is MakeDir and SetMode as one act; with may be nil.
func (s *Session) MakeDirWith(ctx context.Context, name string, opts *sandbox.MakeDirOptions, with *sandbox.ModeOptions) (*sandbox.FileInfo, error) {
	const op = "make directory"
	inner, ok := s.inner.(sandbox.Tree)
	if !ok {
		return nil, unsupported(op)
	}
	if opts == nil {
		opts = &sandbox.MakeDirOptions{}
	}
	fields := map[string]any{}
	if opts.Mode != 0 {
		fields["mode"] = uint32(opts.Mode)
	}
	maps.Copy(fields, modeFields(with))
	return s.arrange(ctx, &asked{op: op, kind: history.FileMakeDir, id: opts.ID, path: name, fields: fields}, func() (*sandbox.FileInfo, error) {
		info, err := inner.MakeDir(ctx, name, opts)
		if err == nil {
			err = s.setMode(ctx, name, with, info)
		}
		return info, err
	})
}

// setMode is the second half of an act, without a record of its own.
func (s *Session) setMode(ctx context.Context, name string, with *sandbox.ModeOptions, info *sandbox.FileInfo) error {
	if with == nil {
		return nil
	}
	inner, ok := s.inner.(sandbox.Tree)
	if !ok {
		return unsupported("set mode")
	}
	now, err := inner.SetMode(ctx, name, with)
	if err == nil {
		info.Mode, info.Owner, info.Group = now.Mode, now.Owner, now.Group
	}
	return err
}

// modeFields is what a record tells of a mode and an owner that were asked for.
func modeFields(opts *sandbox.ModeOptions) map[string]any {
	fields := map[string]any{}
	if opts == nil {
		return fields
	}
	if opts.Mode != nil {
		fields["mode"] = uint32(*opts.Mode)
	}
	if opts.Owner != "" {
		fields["owner"] = opts.Owner
	}
	if opts.Group != "" {
		fields["group"] = opts.Group
	}
	return fields
}

// Move implements sandbox.Tree. The path of the operation is the new one.
func (s *Session) Move(ctx context.Context, from, to string, opts *sandbox.MoveOptions) (*sandbox.FileInfo, error) {
	const op = "move"
	inner, ok := s.inner.(sandbox.Tree)
	if !ok {
		return nil, unsupported(op)
	}
	if opts == nil {
		opts = &sandbox.MoveOptions{}
	}
	if err := checkPath("from", from); err != nil {
		return nil, err
	}
	fields := map[string]any{"old_path": sandbox.Resolve(s.workdir(), from), "replace": opts.Replace}
	return s.arrange(ctx, &asked{op: op, kind: history.FileMove, id: opts.ID, path: to, old: from, fields: fields}, func() (*sandbox.FileInfo, error) {
		return inner.Move(ctx, from, to, opts)
	})
}

// SetMode implements sandbox.Tree.
func (s *Session) SetMode(ctx context.Context, name string, opts *sandbox.ModeOptions) (*sandbox.FileInfo, error) {
	const op = "set mode"
	inner, ok := s.inner.(sandbox.Tree)
	if !ok {
		return nil, unsupported(op)
	}
	if opts == nil {
		opts = &sandbox.ModeOptions{}
	}
	fields := modeFields(opts)
	fields["recursive"] = opts.Recursive
	return s.arrange(ctx, &asked{op: op, kind: history.FileSetMode, id: opts.ID, path: name, fields: fields}, func() (*sandbox.FileInfo, error) {
		return inner.SetMode(ctx, name, opts)
	})
}

// arrange records an act whose result is what the file has become.
func (s *Session) arrange(ctx context.Context, q *asked, do func() (*sandbox.FileInfo, error)) (*sandbox.FileInfo, error) {
	b, err := s.enact(ctx, q)
	if err != nil {
		return nil, err
	}
	defer b.leave()
	if b.earlier != nil {
		return arrangedBefore(b.earlier)
	}
	info, err := do()
	if err != nil {
		return nil, b.fail(ctx, err)
	}
	b.succeed(ctx, described(info))
	return info, nil
}

// described is what the history keeps of a file. The mode has all its bits.
func described(info *sandbox.FileInfo) map[string]any {
	fields := map[string]any{
		"path": info.Path, "size": info.Size, "mode": uint32(info.Mode), "modified": history.FormatTime(info.Modified),
	}
	for name, value := range map[string]string{"owner": info.Owner, "group": info.Group, "target": info.Target} {
		if value != "" {
			fields[name] = value
		}
	}
	return fields
}

// arrangedBefore is the result of an act that was asked for twice.
func arrangedBefore(op *history.Operation) (*sandbox.FileInfo, error) {
	if err := failedBefore(op); err != nil {
		return nil, err
	}
	var info sandbox.FileInfo
	if err := json.Unmarshal(op.Result, &info); err != nil {
		return nil, &sandbox.Error{Op: "read result of " + op.ID, Code: sandbox.CodeHistory, Err: err}
	}
	info.Mode = fs.FileMode(uint32(info.Mode))
	return &info, nil
}
