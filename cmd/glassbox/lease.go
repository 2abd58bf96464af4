package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/sandbox"
)

// takeLease asks who owns the state folder to stay, and watches that it does:
// if it goes all the same, this process takes its place, and what it had under
// way goes on.
func (a *app) takeLease(ctx context.Context) error {
	transport := a.stateTransport()
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	req, err := http.NewRequestWithContext(watching, http.MethodGet, "http://localhost/glassbox/lease", nil)
	if err != nil {
		stop()
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.Join(errors.New("the owner of the state folder gives no lease: "+resp.Status), resp.Body.Close())
	}
	if err != nil {
		stop()
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closing {
		stop()
		return resp.Body.Close()
	}
	a.closers = append(a.closers, stop)
	a.watching.Go(func() {
		_, _ = io.Copy(io.Discard, resp.Body) // ends with the owner, or with us
		resp.Body.Close()
		transport.CloseIdleConnections()
		if watching.Err() == nil {
			if err := a.takeOver(watching); err != nil && watching.Err() == nil {
				a.say("the server of this machine's sandboxes has ended, and none could be started: %v", err)
			}
		}
	})
	return nil
}

const (
	leaseTimeout = 5 * time.Second
	takeOverWait = 20 * time.Millisecond
)

func (a *app) stateTransport() *http.Transport {
	return &http.Transport{
		ResponseHeaderTimeout: leaseTimeout,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return localruntime.DialState(ctx, a.settings.stateDir)
		},
	}
}

// takeOver finds the owner of the state folder, or makes this process it.
func (a *app) takeOver(ctx context.Context) error {
	for ctx.Err() == nil {
		if a.takeLease(ctx) == nil {
			return nil
		}
		if err := a.own(ctx); err == nil || !errors.Is(err, localruntime.ErrOwned) {
			return err
		}
		// It has just begun, or is about to end.
		select {
		case <-time.After(takeOverWait):
		case <-ctx.Done():
		}
	}
	return sandbox.FromContext(ctx, "reach the local runtime")
}
