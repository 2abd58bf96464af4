package opensandbox

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

var _ interface {
	sandbox.Pauser
	sandbox.Renewer
	sandbox.Labeler
	sandbox.Snapshotter
} = (*Provider)(nil)

// snapshotAnswer is a snapshot as the service tells it.
type snapshotAnswer struct {
	ID      string `json:"id"`
	Sandbox string `json:"sandboxId"`
	Name    string `json:"name"`
	Status  struct {
		State   sandbox.SnapshotState `json:"state"`
		Reason  string                `json:"reason"`
		Message string                `json:"message"`
		Changed time.Time             `json:"lastTransitionAt"`
	} `json:"status"`
	Created time.Time `json:"createdAt"`
	Size    int64     `json:"size"` // of our own local runtime
}

func (a *snapshotAnswer) snapshot() *sandbox.Snapshot {
	return &sandbox.Snapshot{
		ID: a.ID, Sandbox: a.Sandbox, Name: a.Name, State: a.Status.State, Reason: a.Status.Reason, Message: a.Status.Message,
		Size: a.Size, CreatedAt: a.Created, ChangedAt: a.Status.Changed,
	}
}

// TakeSnapshot implements sandbox.Snapshotter. As with creating, a lost answer
// may have left one, so it is sent once.
func (p *Provider) TakeSnapshot(ctx context.Context, id, name string) (*sandbox.Snapshot, error) {
	if err := validID(id); err != nil {
		return nil, err
	}
	body := map[string]string{}
	if name != "" {
		body["name"] = name
	}
	c := &call{op: "take snapshot", method: http.MethodPost, path: "/sandboxes/" + id + "/snapshots", sandbox: id, newer: true, body: body}
	var a snapshotAnswer
	if err := p.do(ctx, c, &a); err != nil {
		return nil, err
	}
	if validID(a.ID) != nil {
		return nil, p.fault(c, &sandbox.Error{Code: sandbox.CodeProvider, Message: "the service answered without an id of the snapshot"})
	}
	return a.snapshot(), nil
}

// GetSnapshot implements sandbox.Snapshotter.
func (p *Provider) GetSnapshot(ctx context.Context, snapshot string) (*sandbox.Snapshot, error) {
	if validID(snapshot) != nil {
		return nil, notASnapshot()
	}
	var a snapshotAnswer
	err := p.do(ctx, &call{op: "get snapshot", method: http.MethodGet, path: "/snapshots/" + snapshot, repeat: true, newer: true}, &a)
	if err != nil {
		return nil, err
	}
	return a.snapshot(), nil
}

func notASnapshot() error {
	return sandbox.Invalid("snapshot", "must be the id of a snapshot: letters, digits and dashes")
}

// ListSnapshots implements sandbox.Snapshotter: newest first, every page.
func (p *Provider) ListSnapshots(ctx context.Context, id string) ([]*sandbox.Snapshot, error) {
	filter := url.Values{}
	if id != "" {
		if err := validID(id); err != nil {
			return nil, err
		}
		filter.Set("sandboxId", id)
	}
	answers, err := pages(ctx, p, &call{op: "list snapshots", method: http.MethodGet, path: "/snapshots", query: filter, repeat: true, newer: true},
		func(a *snapshotAnswer) string { return a.ID })
	if err != nil {
		return nil, err
	}
	list := make([]*sandbox.Snapshot, len(answers))
	for i, a := range answers {
		list[i] = a.snapshot()
	}
	return list, nil
}

// DeleteSnapshot implements sandbox.Snapshotter.
func (p *Provider) DeleteSnapshot(ctx context.Context, snapshot string) error {
	if validID(snapshot) != nil {
		return notASnapshot()
	}
	return p.do(ctx, &call{op: "delete snapshot", method: http.MethodDelete, path: "/snapshots/" + snapshot, newer: true}, nil)
}

const pageSize = 200

// pages asks for every page of a list.
func pages[T any](ctx context.Context, p *Provider, c *call, id func(*T) string) ([]*T, error) {
	var list []*T
	seen := map[string]bool{} // one that is made meanwhile moves others to the next page
	for page := 1; ; page++ {
		var a struct {
			Items      []*T `json:"items"`
			Pagination struct {
				HasNext bool `json:"hasNextPage"`
			} `json:"pagination"`
		}
		c.query.Set("page", strconv.Itoa(page))
		c.query.Set("pageSize", strconv.Itoa(pageSize))
		if err := p.do(ctx, c, &a); err != nil {
			return nil, err
		}
		before := len(list)
		for _, item := range a.Items {
			if item != nil && !seen[id(item)] {
				seen[id(item)] = true
				list = append(list, item)
			}
		}
		if !a.Pagination.HasNext || len(list) == before {
			return list, nil
		}
	}
}
