package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/glassboxhq/glassbox/internal/execd"
	"github.com/glassboxhq/glassbox/internal/recorder"
	"github.com/glassboxhq/glassbox/record"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/native"
)

// envExecdToken is where an execd finds its token; without one it lets
// everyone in.
const envExecdToken = "EXECD_ACCESS_TOKEN"

// serveExecd stands in the place of an execd: it speaks that wire alone and
// records nothing, so what is put beside it finds a stranger.
func serveExecd(ctx context.Context, address string, logger *slog.Logger) (err error) {
	defaultSignals()
	inner, err := native.New(nil)
	if err != nil {
		return err
	}
	// An execd knows no turns.
	turns := &sandbox.Concurrency{Commands: 256, Reads: 1024, Writes: 256, Uploads: 64}
	session := record.New(inner, nil, &record.Options{Logger: logger, NoFileChanges: true, Concurrency: turns})
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err = errors.Join(err, session.Close(ctx))
	}()
	token := os.Getenv(envExecdToken)
	handler := execd.New(session, nil, &execd.Options{
		Token: token, Open: token == "", Workdir: inner.Workdir(), Home: os.Getenv("HOME"), EnvFile: os.Getenv(execd.EnvVariable), Logger: logger,
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", address)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", address, err)
	}
	return recorder.Serve(ctx, listener, handler)
}
