package opensandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
)

const taken = `{"id":"` + snapshotID + `","sandboxId":"` + boxID + `","name":"n","createdAt":"2026-11-29T16:00:00Z",
	"status":{"state":"Ready","reason":"snapshot_ready","lastTransitionAt":"2026-11-29T16:00:01Z"}}`

// What is sent, and what is made of the answer.
func TestChanges(t *testing.T) {
	snapshot := &sandbox.Snapshot{
		ID: snapshotID, Sandbox: boxID, Name: "n", State: sandbox.SnapshotReady, Reason: "snapshot_ready",
		CreatedAt: time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC), ChangedAt: time.Date(2026, 11, 29, 16, 0, 1, 0, time.UTC),
	}
	const get = "GET /v1/sandboxes/" + boxID + " "
	value := "b"
	for _, tt := range []struct {
		name   string
		do     func(context.Context, *opensandbox.Provider) (any, error)
		sent   []string
		answer string
		want   any // nil: the sandbox
	}{
		{
			"pause", func(ctx context.Context, p *opensandbox.Provider) (any, error) { return p.Pause(ctx, boxID) },
			[]string{"POST /v1/sandboxes/" + boxID + "/pause ", get},
			"", nil,
		},
		{
			"resume", func(ctx context.Context, p *opensandbox.Provider) (any, error) { return p.Resume(ctx, boxID) },
			[]string{"POST /v1/sandboxes/" + boxID + "/resume ", get},
			"", nil,
		},
		{
			"renew", func(ctx context.Context, p *opensandbox.Provider) (any, error) {
				return p.Renew(ctx, boxID, time.Date(2027, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)))
			},
			[]string{"POST /v1/sandboxes/" + boxID + `/renew-expiration {"expiresAt":"2027-01-02T02:04:05Z"}`, get},
			`{"expiresAt":"x"}`, nil,
		},
		{
			"metadata", func(ctx context.Context, p *opensandbox.Provider) (any, error) {
				return p.SetMetadata(ctx, boxID, map[string]*string{"a": &value, "gone": nil})
			},
			[]string{"PATCH /v1/sandboxes/" + boxID + `/metadata {"a":"b","gone":null}`},
			running, nil,
		},
		{
			"take", func(ctx context.Context, p *opensandbox.Provider) (any, error) {
				return p.TakeSnapshot(ctx, boxID, "n")
			},
			[]string{"POST /v1/sandboxes/" + boxID + `/snapshots {"name":"n"}`},
			taken, snapshot,
		},
		{
			"take without a name", func(ctx context.Context, p *opensandbox.Provider) (any, error) {
				return p.TakeSnapshot(ctx, boxID, "")
			},
			[]string{"POST /v1/sandboxes/" + boxID + `/snapshots {}`},
			taken, snapshot,
		},
		{
			"get", func(ctx context.Context, p *opensandbox.Provider) (any, error) { return p.GetSnapshot(ctx, snapshotID) },
			[]string{"GET /v1/snapshots/" + snapshotID + " "},
			taken, snapshot,
		},
		{
			"list", func(ctx context.Context, p *opensandbox.Provider) (any, error) { return p.ListSnapshots(ctx, boxID) },
			[]string{"GET /v1/snapshots?page=1&pageSize=200&sandboxId=" + boxID + " "},
			`{"items":[` + taken + `]}`,
			[]*sandbox.Snapshot{snapshot},
		},
		{
			"create", func(ctx context.Context, p *opensandbox.Provider) (any, error) {
				info, err := p.Create(ctx, &sandbox.Spec{Snapshot: snapshotID, Metadata: map[string]string{"sandbox_instance_id": "i-1"}})
				if err == nil && info.Snapshot != snapshotID {
					err = fmt.Errorf("it came from %q", info.Snapshot)
				}
				return nil, err
			},
			[]string{`POST /v1/sandboxes {"entrypoint":["tail","-f","/dev/null"],"extensions":{},"metadata":{"sandbox_instance_id":"i-1"},"resourceLimits":{},"snapshotId":"` + snapshotID + `"}`},
			`{"id":"` + boxID + `"}`, any(nil),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var sent []string
			p, _ := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				sent = append(sent, r.Method+" "+r.RequestURI+" "+string(body))
				if r.Method == http.MethodGet && tt.want == nil {
					reply(w, 200, running)
					return
				}
				reply(w, 202, tt.answer)
			}, nil)
			got, err := tt.do(t.Context(), p)
			if err != nil || cmp.Diff(sent, tt.sent) != "" {
				t.Fatalf("%v, sent %s", err, cmp.Diff(sent, tt.sent))
			}
			if info, ok := got.(*sandbox.Info); ok && tt.want == nil {
				if info.ID != boxID || info.State != sandbox.Running {
					t.Errorf("got %+v", info)
				}
				return
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("got %s", diff)
			}
		})
	}
}

// What is no id never becomes part of a path.
func TestNoIDs(t *testing.T) {
	p, _ := newProvider(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked for", r.URL) }, nil)
	for _, id := range []string{"", "..", "a/b", "a?b", "a%2Fb", "é", strings.Repeat("x", 129)} {
		_, pause := p.Pause(t.Context(), id)
		_, label := p.SetMetadata(t.Context(), id, map[string]*string{"a": nil})
		_, take := p.TakeSnapshot(t.Context(), id, "")
		_, get := p.GetSnapshot(t.Context(), id)
		_, renew := p.Renew(t.Context(), id, time.Now())
		for i, err := range []error{pause, label, take, get, renew, p.DeleteSnapshot(t.Context(), id)} {
			if !errors.Is(err, sandbox.ErrInvalid) {
				t.Errorf("%q: call %d gave %v", id, i, err)
			}
		}
	}
	_, err := p.ListSnapshots(t.Context(), "a/b")
	if _, none := p.SetMetadata(t.Context(), boxID, nil); !errors.Is(err, sandbox.ErrInvalid) || !errors.Is(none, sandbox.ErrInvalid) {
		t.Errorf("%v, %v", err, none)
	}
	if err := opensandbox.ValidateSpec(&sandbox.Spec{Image: "x", Snapshot: "y"}); !errors.Is(err, sandbox.ErrInvalid) {
		t.Errorf("image and snapshot: %v", err)
	}
}
