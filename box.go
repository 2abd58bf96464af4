package glassbox

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// Sandbox is an open sandbox.
type Sandbox struct {
	service *service
	info    *sandbox.Info
	session *recorded.Session
	created bool // by this handle

	once sync.Once
	err  error
}

// ID returns the id that the service gave the sandbox.
func (b *Sandbox) ID() string { return b.info.ID }

// Info returns what the service said of the sandbox when it was opened.
func (b *Sandbox) Info() *Info { return b.info }

// Run runs a command to its end. A line is run by bash, or by sh where there
// is none; cmd says the rest, and may be nil. For an argument list without a
// shell, leave line empty and set cmd.Args. A command that fails or is stopped
// at its timeout is no error: see Result.Status and Result.ExitCode.
func (b *Sandbox) Run(ctx context.Context, line string, cmd *Command) (*Result, error) {
	return b.session.Run(ctx, withLine(line, cmd))
}

// Start starts a command and returns while it runs.
func (b *Sandbox) Start(ctx context.Context, line string, cmd *Command) (Process, error) {
	return b.session.Start(ctx, withLine(line, cmd))
}

func withLine(line string, cmd *Command) *Command {
	c := Command{}
	if cmd != nil {
		c = *cmd
	}
	if line != "" {
		c.Line = line
	}
	return &c
}

// Attach finds a command again by the id of its operation, running or ended,
// and gives its output from a place on: the zero Offsets are its beginning.
func (b *Sandbox) Attach(ctx context.Context, operationID string, from Offsets) (Process, error) {
	return b.session.Attach(ctx, operationID, from)
}

// Read opens a file. The caller closes it.
func (b *Sandbox) Read(ctx context.Context, path string, opts *ReadOptions) (io.ReadCloser, error) {
	return b.session.Read(ctx, path, opts)
}

// ReadFile returns the content of a file.
func (b *Sandbox) ReadFile(ctx context.Context, path string) ([]byte, error) {
	f, err := b.Read(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(f)
	return content, errors.Join(err, f.Close())
}

// Write replaces a file, whole or not at all.
func (b *Sandbox) Write(ctx context.Context, path string, content io.Reader, opts *WriteOptions) (*FileInfo, error) {
	return b.session.Write(ctx, path, content, opts)
}

// List returns what a directory holds, by name.
func (b *Sandbox) List(ctx context.Context, path string) ([]*FileInfo, error) {
	return b.session.List(ctx, path)
}

// Remove removes a file, a link or a directory.
func (b *Sandbox) Remove(ctx context.Context, path string, opts *RemoveOptions) error {
	return b.session.Remove(ctx, path, opts)
}

// Renew lets the sandbox live until a moment from now on, by the service's
// clock.
func (b *Sandbox) Renew(ctx context.Context, life time.Duration) error {
	if life <= 0 {
		return sandbox.Invalid("life", "must be positive")
	}
	_, err := b.service.renew(ctx, b.info.ID, b.service.provider.Now().Add(life))
	return err
}

// Pause stops all processes of the sandbox where they are. Its expiry stands.
func (b *Sandbox) Pause(ctx context.Context) error {
	_, err := b.service.pause(ctx, b.info.ID)
	return err
}

// Resume lets the paused sandbox go on.
func (b *Sandbox) Resume(ctx context.Context) error {
	_, err := b.service.resume(ctx, b.info.ID)
	return err
}

// SetMetadata sets the named entries of the sandbox's metadata, removes those
// that are nil, and leaves the others.
func (b *Sandbox) SetMetadata(ctx context.Context, change map[string]*string) (*Info, error) {
	return b.service.setMetadata(ctx, b.info.ID, change)
}

// TakeSnapshot keeps the files of the sandbox as they are, and returns when
// they are kept.
func (b *Sandbox) TakeSnapshot(ctx context.Context, name string) (*Snapshot, error) {
	return b.service.takeSnapshot(ctx, b.info.ID, name)
}

// History reads what was done in the sandbox.
func (b *Sandbox) History() *recorded.History { return b.session.History() }

// Session returns the data plane beneath, for adapters.
func (b *Sandbox) Session() sandbox.Session { return b.session }

// Close ends the handle, and deletes the sandbox if this handle created it and
// Options.Cleanup does not keep it: when those who read its history have done
// so, and it is archived where that was asked for. Its error tells what could
// not be saved. A second Close returns what the first did.
func (b *Sandbox) Close(ctx context.Context) error {
	b.once.Do(func() {
		ctx := context.WithoutCancel(ctx) // a caller who is done may come with one that is, too
		b.service.keeper.stop()
		b.err = errors.Join(b.end(ctx), b.service.close())
	})
	return b.err
}

// end lets go of the sandbox, as Options.Cleanup says.
func (b *Sandbox) end(ctx context.Context) error {
	o := b.service.opts
	deletes := b.created && o.Cleanup == OnClose
	if deletes {
		if err := b.save(ctx); err != nil {
			return errors.Join(err, b.session.Close(ctx))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, o.RequestTimeout)
	defer cancel()
	err := b.session.Close(ctx)
	var endErr error
	switch {
	case deletes:
		endErr = b.service.delete(ctx, b.info.ID)
	case b.created && o.Cleanup == AfterTTL:
		_, endErr = b.service.renew(ctx, b.info.ID, b.service.provider.Now().Add(o.CleanupTTL))
	}
	if errors.Is(endErr, sandbox.ErrNotFound) { // it may have expired
		endErr = nil
	}
	return errors.Join(err, endErr)
}
