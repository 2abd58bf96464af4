package main

import (
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/history"
)

// What followed a history is shown once, in its order, wherever it is kept.
func TestFollowing(t *testing.T) {
	t.Parallel()
	op := func(id string, second int) *history.Operation {
		return &history.Operation{ID: id, StartedAt: time.Unix(int64(second), 0)}
	}
	got := ""
	for _, op := range following([]*history.Operation{op("d", 4), op("a", 1)}, []*history.Operation{op("b", 2), op("d", 4), op("c", 3)}, func(id string) bool { return id == "c" }) {
		got += op.ID
	}
	if got != "abd" {
		t.Errorf("got %q, want abd", got)
	}
}
