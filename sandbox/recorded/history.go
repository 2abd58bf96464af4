package recorded

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// History reads the history that the recorder keeps.
type History struct{ s *Session }

var _ interface {
	history.Recording
	history.Consumer
	history.ConsumerLister
	history.Pruner
	history.Configurer
} = (*History)(nil)

// History returns the history of the sandbox.
func (s *Session) History() *History { return &History{s} }

// Get implements history.Reader.
func (h *History) Get(ctx context.Context, opID string) (*history.Operation, error) {
	var op history.Operation
	if err := h.s.get(ctx, "get operation", wire.Path(wire.PathOp, opID), nil, &op); err != nil {
		return nil, err
	}
	op.Duration = time.Duration(op.DurationMS) * time.Millisecond
	return &op, nil
}

// List implements history.Reader.
func (h *History) List(ctx context.Context, filter *history.Filter) (*history.Page, error) {
	if filter == nil {
		filter = &history.Filter{}
	}
	var page history.Page
	if err := h.s.get(ctx, "list operations", wire.PathOps, wire.EncodeFilter(filter), &page); err != nil {
		return nil, err
	}
	for _, op := range page.Operations {
		op.Duration = time.Duration(op.DurationMS) * time.Millisecond
	}
	return &page, nil
}

// Output implements history.Reader.
func (h *History) Output(ctx context.Context, opID string, stream sandbox.Stream, offset, length int64) ([]byte, error) {
	query := offsetQuery(map[string]int64{"offset": offset, "length": length})
	query.Set("stream", string(stream))
	return h.bytes(ctx, &request{op: "read output", method: http.MethodGet, path: wire.Path(wire.PathOutput, opID), query: query})
}

// Terminal implements history.TerminalReader.
func (h *History) Terminal(ctx context.Context, opID string) ([]history.TerminalEvent, error) {
	lines, err := h.bytes(ctx, &request{op: "read moments of a terminal", method: http.MethodGet, path: wire.Path(wire.PathMoments, opID)})
	if err != nil {
		return nil, err
	}
	return history.DecodeTerminal(lines)
}

// bytes makes a safe request for an answer that is taken as it is.
func (h *History) bytes(ctx context.Context, r *request) (data []byte, err error) {
	err = h.s.again(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, h.s.opts.RequestTimeout)
		defer cancel()
		resp, err := h.s.send(ctx, r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if data, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1)); err != nil {
			return h.s.unreachable(ctx, r.op, err)
		}
		if len(data) > maxAnswer {
			return h.s.unreachable(ctx, r.op, errEndless)
		}
		return nil
	})
	return data, err
}

// Changes implements history.Reader.
func (h *History) Changes(ctx context.Context, query *history.ChangeQuery) (*history.Feed, error) {
	q := offsetQuery(map[string]int64{"after": query.After, "limit": int64(query.Limit)})
	if query.Wait > 0 {
		q.Set("wait", query.Wait.String())
	}
	var feed history.Feed
	err := h.s.again(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, h.s.opts.RequestTimeout+query.Wait)
		defer cancel()
		resp, err := h.s.send(ctx, &request{op: "follow history", method: http.MethodGet, path: wire.PathChanges, query: q})
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if err := decodeInto(resp.Body, &feed); err != nil {
			return h.s.unreachable(ctx, "follow history", err)
		}
		return nil
	})
	return &feed, err
}

// Acknowledge implements history.Consumer.
func (h *History) Acknowledge(ctx context.Context, consumer string, seq int64) error {
	query := offsetQuery(map[string]int64{"seq": seq})
	return h.s.again(ctx, func(ctx context.Context) error {
		return h.s.once(ctx, &request{op: "acknowledge", method: http.MethodPut, path: wire.Path(wire.PathAck, consumer), query: query}, nil)
	})
}

// Consumers implements history.ConsumerLister.
func (h *History) Consumers(ctx context.Context) ([]*history.ConsumerState, error) {
	var list []*history.ConsumerState
	err := h.s.get(ctx, "list consumers", wire.PathReaders, nil, &list)
	return list, err
}

// Prune implements history.Pruner.
func (h *History) Prune(ctx context.Context) (*history.Pruned, error) {
	var pruned history.Pruned
	err := h.s.once(ctx, &request{op: "prune history", method: http.MethodPost, path: wire.PathPrune}, &pruned)
	return &pruned, err
}

// Config implements history.Configurer.
func (h *History) Config(ctx context.Context) (*history.StoredConfig, error) {
	var config history.StoredConfig
	if err := h.s.get(ctx, "read configuration of history", wire.PathConfig, nil, &config); err != nil {
		return nil, err
	}
	return &config, nil
}

// SetConfig implements history.Configurer. It is tried once: a change whose
// answer was lost has another revision.
func (h *History) SetConfig(ctx context.Context, change *history.ConfigChange) (*history.StoredConfig, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return nil, &sandbox.Error{Op: "configure history", Code: sandbox.CodeInvalid, Err: err}
	}
	var config history.StoredConfig
	err = h.s.once(ctx, &request{op: "configure history", method: http.MethodPut, path: wire.PathConfig, body: bytes.NewReader(body), size: int64(len(body))}, &config)
	if err != nil {
		return nil, err
	}
	return &config, nil
}

// Import adds an operation that has already ended elsewhere.
func (h *History) Import(ctx context.Context, op *history.Operation) error {
	return h.add(ctx, op, wire.PathOps)
}

// ImportUntold is Import of an act that its client may have had recorded
// itself: under the same id, or as it announced it. Then nothing is added.
func (h *History) ImportUntold(ctx context.Context, op *history.Operation) error {
	return h.add(ctx, op, wire.PathOps+"?"+wire.QueryUntold+"=1")
}

func (h *History) add(ctx context.Context, op *history.Operation, path string) error {
	body, err := json.Marshal(op)
	if err != nil {
		return &sandbox.Error{Op: "import operation", Code: sandbox.CodeInvalid, Err: err}
	}
	return h.s.again(ctx, func(ctx context.Context) error {
		return h.s.once(ctx, &request{op: "import operation", method: http.MethodPost, path: path, body: bytes.NewReader(body), size: int64(len(body))}, nil)
	})
}
