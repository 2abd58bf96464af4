package opensandbox

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Pause implements sandbox.Pauser. A service may take a while: the sandbox is
// then told as it is on the way.
func (p *Provider) Pause(ctx context.Context, id string) (*sandbox.Info, error) {
	info, err := p.change(ctx, &call{op: "pause sandbox", method: http.MethodPost, path: "/pause"}, id)
	e, ok := errors.AsType[*sandbox.Error](err)
	if !ok || !strings.HasSuffix(e.ProviderCode, "SANDBOX_PAUSE_FAILED") {
		return info, err
	}
	// Docker's fails so, too, where the sandbox is paused already.
	if is, getErr := p.Get(ctx, id); getErr == nil && is.State == sandbox.Paused {
		e.Code, e.Message = sandbox.CodeSandboxState, "the sandbox is paused already"
	}
	return nil, e
}

// Resume implements sandbox.Pauser.
func (p *Provider) Resume(ctx context.Context, id string) (*sandbox.Info, error) {
	return p.change(ctx, &call{op: "resume sandbox", method: http.MethodPost, path: "/resume"}, id)
}

// Renew implements sandbox.Renewer.
func (p *Provider) Renew(ctx context.Context, id string, at time.Time) (*sandbox.Info, error) {
	return p.change(ctx, &call{
		op: "renew sandbox", method: http.MethodPost, path: "/renew-expiration", repeat: true,
		body: map[string]string{"expiresAt": at.UTC().Format(time.RFC3339Nano)},
	}, id)
}

// change sends a call about a sandbox, and asks what has become of it.
func (p *Provider) change(ctx context.Context, c *call, id string) (*sandbox.Info, error) {
	if err := validID(id); err != nil {
		return nil, err
	}
	c.path, c.sandbox = "/sandboxes/"+id+c.path, id
	if err := p.do(ctx, c, nil); err != nil {
		return nil, err
	}
	return p.Get(ctx, id)
}

// SetMetadata implements sandbox.Labeler.
func (p *Provider) SetMetadata(ctx context.Context, id string, change map[string]*string) (*sandbox.Info, error) {
	if err := validID(id); err != nil {
		return nil, err
	}
	if len(change) == 0 {
		return nil, sandbox.Invalid("metadata", "must name what is to be changed")
	}
	c := &call{
		op: "set metadata", method: http.MethodPatch, path: "/sandboxes/" + id + "/metadata", sandbox: id, repeat: true, newer: true, body: change,
	}
	var a answer
	if err := p.do(ctx, c, &a); err != nil {
		return nil, err
	}
	return a.info(), nil
}
