package glassbox

import (
	"context"
	"io"
)

// Append adds to the end of a file, which it makes if it is missing.
func (b *Sandbox) Append(ctx context.Context, path string, content io.Reader, opts *WriteOptions) (*FileInfo, error) {
	return b.session.Append(ctx, path, content, opts)
}

// Edit replaces text in a file: in one place, or with Edit.All in every one.
func (b *Sandbox) Edit(ctx context.Context, path string, edit *Edit) (*Edited, error) {
	return b.session.Edit(ctx, path, edit)
}

// Stat describes a file; a link is described, not followed.
func (b *Sandbox) Stat(ctx context.Context, path string) (*FileInfo, error) {
	return b.session.Stat(ctx, path)
}

// MakeDir makes a directory and those above it. One that is there is no error.
func (b *Sandbox) MakeDir(ctx context.Context, path string, opts *MakeDirOptions) (*FileInfo, error) {
	return b.session.MakeDir(ctx, path, opts)
}

// Move renames a file or a directory, across file systems too.
func (b *Sandbox) Move(ctx context.Context, from, to string, opts *MoveOptions) (*FileInfo, error) {
	return b.session.Move(ctx, from, to, opts)
}

// SetMode changes the mode and the owner of a file, or of a tree.
func (b *Sandbox) SetMode(ctx context.Context, path string, opts *ModeOptions) (*FileInfo, error) {
	return b.session.SetMode(ctx, path, opts)
}

// Glob finds files by name, in one request.
func (b *Sandbox) Glob(ctx context.Context, query *GlobQuery) (*GlobResult, error) {
	return b.session.Glob(ctx, query)
}

// Grep finds lines by their content, in one request.
func (b *Sandbox) Grep(ctx context.Context, query *GrepQuery) (*GrepResult, error) {
	return b.session.Grep(ctx, query)
}

// Download streams a file or a tree as a tar. The caller closes it. It comes
// from a sandbox: unpack it only where no name and no link can lead out.
func (b *Sandbox) Download(ctx context.Context, path string, opts *DownloadOptions) (io.ReadCloser, error) {
	return b.session.Download(ctx, path, opts)
}

// Upload unpacks a tar below a directory. What was unpacked before a fault
// stays, and the result, which may come with the error, says what.
func (b *Sandbox) Upload(ctx context.Context, path string, tar io.Reader, opts *UploadOptions) (*Uploaded, error) {
	return b.session.Upload(ctx, path, tar, opts)
}
