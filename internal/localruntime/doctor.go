package localruntime

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime/doctor"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Check is one thing that [Doctor] looked at.
type Check = doctor.Check

const trialTimeout = time.Minute

// Doctor tells what this machine can do for sandboxes. It starts one in a
// folder of its own within the state folder, so it can be asked while another
// process owns the state, and what is wrong with the folder comes out.
func Doctor(ctx context.Context, opts *Options) []Check {
	return doctor.Run(ctx, doctor.Machine(&doctor.Options{
		Runsc: opts.Runsc, Recorder: opts.Recorder, StateDir: opts.StateDir,
		Start: func(ctx context.Context) error { return trial(ctx, opts) },
	}))
}

// trial makes a sandbox and ends it.
func trial(ctx context.Context, opts *Options) (err error) {
	folder, err := trialFolder(opts.StateDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	own := *opts
	own.StateDir, own.Logger, own.OnConnect = folder, nil, nil
	rt, err := New(&own)
	if err != nil {
		return err
	}
	running, stop := context.WithTimeout(ctx, trialTimeout)
	ended := make(chan error, 1)
	go func() { ended <- rt.Run(running) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()
	info, err := rt.Create(running, &sandbox.Spec{Name: "doctor", Network: NetworkNone, Timeout: trialTimeout})
	if err != nil {
		return err
	}
	return rt.Delete(running, info.ID)
}

// trialFolder makes a folder in the state folder, or where that would be made,
// so that it lies in the same file system.
func trialFolder(state string) (string, error) {
	if state == "" {
		return os.MkdirTemp("", ".doctor-")
	}
	state, err := filepath.Abs(state)
	if err != nil {
		return "", err
	}
	for {
		folder, err := os.MkdirTemp(state, ".doctor-")
		if !errors.Is(err, fs.ErrNotExist) || state == filepath.Dir(state) {
			return folder, err
		}
		state = filepath.Dir(state)
	}
}
