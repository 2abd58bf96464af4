package record

import (
	"context"
	"encoding/json"
	"io"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Download implements sandbox.Archiver. The operation ends when the reader is
// closed. The same id again downloads again, and records nothing.
func (s *Session) Download(ctx context.Context, name string, opts *sandbox.DownloadOptions) (io.ReadCloser, error) {
	const op = "download"
	inner, ok := s.inner.(sandbox.Archiver)
	if !ok {
		return nil, unsupported(op)
	}
	if opts == nil {
		opts = &sandbox.DownloadOptions{}
	}
	b, err := s.enact(ctx, &asked{op: op, kind: history.FileDownload, id: opts.ID, path: name})
	if err != nil {
		return nil, err
	}
	defer b.leave()
	tar, err := inner.Download(ctx, name, opts)
	if b.earlier != nil {
		return tar, err
	}
	if err != nil {
		return nil, b.fail(ctx, err)
	}
	return b.reader(ctx, tar, nil), nil
}

// Upload implements sandbox.Archiver. What was unpacked before a fault is
// recorded with it.
func (s *Session) Upload(ctx context.Context, name string, tar io.Reader, opts *sandbox.UploadOptions) (*sandbox.Uploaded, error) {
	const op = "upload"
	inner, ok := s.inner.(sandbox.Archiver)
	if !ok {
		return nil, unsupported(op)
	}
	if opts == nil {
		opts = &sandbox.UploadOptions{}
	}
	fields := map[string]any{"max_files": opts.MaxFiles, "max_bytes": opts.MaxBytes}
	b, err := s.enact(ctx, &asked{op: op, kind: history.FileUpload, id: opts.ID, path: name, fields: fields})
	if err != nil {
		return nil, err
	}
	defer b.leave()
	if b.earlier != nil {
		return uploadedBefore(b.earlier)
	}
	from := &source{Reader: tar}
	done, err := inner.Upload(ctx, name, from, opts)
	if done == nil {
		done = &sandbox.Uploaded{}
	}
	result := map[string]any{
		"path": b.file.Path, "uploaded_files": done.Files, "directories": done.Directories, "links": done.Links, "size": done.Bytes,
	}
	if err == nil {
		b.succeed(ctx, result)
		return done, nil
	}
	if from.err != nil {
		err = &sandbox.Error{
			Op: op, Code: sandbox.CodeCancelled, Err: from.err,
			Message: "the archive could not be read to its end; what came before is unpacked",
		}
	}
	result["error"] = map[string]any{"code": sandbox.CodeOf(err), "message": err.Error()}
	b.finish(ctx, &history.End{
		Status: statusOf(err), Result: history.Encode(result), File: b.file,
		OutputComplete: true, Recording: sandbox.RecordedWhole,
	})
	return done, err
}

// uploadedBefore is the result of an upload that was asked for twice.
func uploadedBefore(op *history.Operation) (*sandbox.Uploaded, error) {
	var result struct {
		Files       int   `json:"uploaded_files"`
		Directories int   `json:"directories"`
		Links       int   `json:"links"`
		Bytes       int64 `json:"size"`
	}
	if err := json.Unmarshal(op.Result, &result); err != nil && history.Final(op.Status) {
		return nil, &sandbox.Error{Op: "read result of " + op.ID, Code: sandbox.CodeHistory, Err: err}
	}
	done := sandbox.Uploaded(result)
	return &done, failedBefore(op)
}
