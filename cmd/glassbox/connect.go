package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/internal/localruntime/egress"
	"github.com/glassboxhq/glassbox/sandbox"
)

// connections records where sandboxes connect to: the host's proxy knows it,
// the recorder in the sandbox keeps it.
type connections struct {
	rt     *localruntime.Runtime
	logger *slog.Logger
	events chan egress.Event
}

// maxEvents wait to be recorded; what comes beyond is logged and not recorded.
const (
	maxEvents     = 1024
	recordTimeout = 5 * time.Second
)

func newConnections(logger *slog.Logger) *connections {
	return &connections{logger: logger, events: make(chan egress.Event, maxEvents)}
}

// note takes an event without blocking the connection that it tells of.
func (c *connections) note(e egress.Event) {
	select {
	case c.events <- e:
	default:
		c.logger.Warn("connection is not recorded, too many at once", "sandbox", e.Sandbox, "host", e.Host, "port", e.Port)
	}
}

// run records events until ctx ends.
func (c *connections) run(ctx context.Context) {
	for {
		select {
		case e := <-c.events:
			if err := c.record(ctx, e); err != nil && ctx.Err() == nil {
				c.logger.WarnContext(ctx, "connection is not recorded", "sandbox", e.Sandbox, "host", e.Host, "port", e.Port, "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (c *connections) record(ctx context.Context, e egress.Event) error {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	session, err := recorderOf(ctx, c.rt, e.Sandbox)
	if err != nil {
		return err
	}
	now := time.Now()
	op := &history.Operation{
		ID: id.New(), Type: history.NetworkConnect, Status: sandbox.Succeeded, Source: history.SourceProxy,
		Actor: history.Actor{Type: history.System}, StartedAt: now, CompletedAt: now,
		Request: history.EncodeRequest(map[string]any{"host": e.Host, "port": e.Port}),
		Result:  history.Encode(map[string]any{"address": e.Address.String()}),
	}
	if !e.Allowed {
		op.Status = sandbox.Unsuccessful
		op.Result = history.Encode(map[string]any{"reason": e.Reason})
	}
	if err := session.History().Import(ctx, op); !errors.Is(err, sandbox.ErrUnsupported) { // made with its history off
		return err
	}
	return nil
}
