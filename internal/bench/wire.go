package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
)

// bare is a sandbox with nothing in it but the service's own execd, which is
// asked without a client: through the service's proxy, and by docker exec.
type bare struct {
	provider *opensandbox.Provider
	id, url  string
	made     float64 // seconds that the service took
}

func newBare(ctx context.Context, url, key string) (*bare, error) {
	p, err := opensandbox.New(url, &opensandbox.Options{Key: opensandbox.Secret(key)})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	info, err := p.Create(ctx, &sandbox.Spec{Image: "python:3.12"})
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	b := &bare{provider: p, id: info.ID, made: time.Since(began).Seconds()}
	e, err := p.Endpoint(ctx, info.ID, 44772)
	if err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	b.url = e.URL
	for range 100 { // until it listens
		if _, err = b.wire(ctx, "true"); err == nil {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	return b, err
}

func (b *bare) close(ctx context.Context) error {
	return errors.Join(b.provider.Delete(context.WithoutCancel(ctx), b.id), b.provider.Close())
}

// wire runs a command over execd's own wire, up to the event that ends it.
func (b *bare) wire(ctx context.Context, line string) (*done, error) {
	body, err := json.Marshal(map[string]string{"command": line})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/command", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := b.provider.Client().Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	d := &done{}
	for events := json.NewDecoder(resp.Body); ; {
		var event struct{ Type, Text string }
		if err := events.Decode(&event); err != nil {
			return nil, fmt.Errorf("the stream of events did not end: %w", err)
		}
		switch event.Type {
		case "stdout":
			d.N += len(event.Text)
		case "execution_complete":
			d.Seconds = time.Since(began).Seconds()
			return d, nil
		case "error":
			return nil, errors.New("the command did not succeed")
		}
	}
}

// docker runs a command by docker exec.
func (b *bare) docker(ctx context.Context, line string) (*done, error) {
	var out tally
	cmd := exec.CommandContext(ctx, "docker", "exec", "sandbox-"+b.id, "sh", "-c", line)
	cmd.Stdout = &out
	var said strings.Builder
	cmd.Stderr = &said
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("docker exec: %w: %s", err, said.String())
	}
	return &done{N: int(out), Seconds: time.Since(began).Seconds()}, nil
}

type tally int

// Write implements io.Writer.
func (t *tally) Write(p []byte) (int, error) { *t += tally(len(p)); return len(p), nil }
