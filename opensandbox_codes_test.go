package glassbox_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The codes that the Python SDK knows, as they are come by on a real service.
// Those of full histories, queues and locks are tested where they arise.
func TestOpenSandboxCodes(t *testing.T) {
	r := needOpenSandbox(t)
	box := r.create(t, nil)
	ctx := t.Context()
	bare := r.bare(t)
	for _, tt := range []struct {
		code sandbox.Code
		call func() error
	}{
		{sandbox.CodeSandboxNotFound, func() error { _, err := glassbox.Connect(ctx, r.url, fakeID, r.options(nil)); return err }},
		{sandbox.CodeSandboxState, func() error { return box.Resume(ctx) }},
		{sandbox.CodeUnsupported, func() error {
			_, err := glassbox.Connect(ctx, r.url, bare, r.options(&glassbox.Options{NoInstall: true}))
			return err
		}},
		{sandbox.CodeImageNotFound, func() error {
			_, err := glassbox.Create(ctx, r.url, r.options(&glassbox.Options{Image: "127.0.0.1:1/no-such"}))
			return err
		}},
		{sandbox.CodeInvalid, func() error { return glassbox.Delete(ctx, r.url, "../x", r.options(nil)) }},
		{sandbox.CodeUnauthorized, func() error {
			_, err := glassbox.List(ctx, r.url, &glassbox.Options{APIKey: "wrong"})
			return err
		}},
		{sandbox.CodeUnavailable, func() error { _, err := glassbox.List(ctx, "http://127.0.0.1:1", nil); return err }},
		{sandbox.CodeFileNotFound, func() error { _, err := box.ReadFile(ctx, "no-such-file"); return err }},
		{sandbox.CodeModified, func() error {
			_, err := box.Write(ctx, "f", strings.NewReader("x"), &glassbox.WriteOptions{IfHash: strings.Repeat("0", 64)})
			return err
		}},
		{sandbox.CodeIsDirectory, func() error { _, err := box.ReadFile(ctx, "/etc"); return err }},
		{sandbox.CodePathNotAllowed, func() error {
			return box.Remove(ctx, "/.agent-history/history.sqlite3", nil)
		}},
		{sandbox.CodeTimeout, func() error {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			_, err := box.Run(ctx, "sleep 9", nil)
			return err
		}},
		{sandbox.CodeCancelled, func() error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, err := box.Run(ctx, "true", nil)
			return err
		}},
		{sandbox.CodeArchive, func() error {
			var text bytes.Buffer
			w := tar.NewWriter(&text)
			if err := errors.Join(w.WriteHeader(&tar.Header{Name: "../out", Mode: 0o600}), w.Close()); err != nil {
				return err
			}
			_, err := box.Upload(ctx, ".", &text, nil)
			return err
		}},
		{sandbox.CodeHistoryConfig, func() error {
			_, err := box.History().SetConfig(ctx, &history.ConfigChange{Changes: map[string]any{"ttl_days": 0}})
			return err
		}},
		{sandbox.CodeHistoryConflict, func() error {
			_, err := box.History().SetConfig(ctx, &history.ConfigChange{Changes: map[string]any{"ttl_days": 3}, Expected: 99})
			return err
		}},
		{sandbox.CodeOperationNotFound, func() error { _, err := box.Attach(ctx, fakeID, glassbox.Offsets{}); return err }},
	} {
		if err := tt.call(); sandbox.CodeOf(err) != tt.code {
			t.Errorf("got %s (%v), want %s", sandbox.CodeOf(err), err, tt.code)
		}
	}
	_, err := glassbox.Get(ctx, r.url, fakeID, r.options(nil))
	e, ok := errors.AsType[*sandbox.Error](err)
	if !ok || e.Provider != "opensandbox" || e.ProviderCode != "DOCKER::SANDBOX_NOT_FOUND" || e.RequestID == "" || e.Sandbox != fakeID || e.Op == "" || e.Retryable {
		t.Errorf("got %+v, want all that the service tells", e)
	}
}
