package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/internal/localruntime"
	"github.com/glassboxhq/glassbox/sandbox"
)

// minPrefix is the shortest beginning of an id of an operation. It begins with
// its time: shorter ones stand for hours and days.
const minPrefix = 8

// isPrefix reports whether a word may be the beginning of an operation's id.
func isPrefix(word string) bool {
	return len(word) >= minPrefix && len(word) < 36 && strings.Trim(word, "0123456789abcdef-") == ""
}

// findPrefix looks in every history for the operation whose id begins so.
func (a *app) findPrefix(ctx context.Context, url string, list []*localruntime.History, prefix string) (*opened, *history.Operation, error) {
	var found []string // ids with what they stand for
	var home *localruntime.History
	var which string
	err := a.eachHistory(ctx, url, list, func(h *opened) error {
		return h.operations(ctx, history.Filter{}, func(op *history.Operation) error {
			if strings.HasPrefix(op.ID, prefix) {
				home, which = h.ref, op.ID
				found = append(found, fmt.Sprintf("\n  %s  %s  %s", op.ID, moment(op.StartedAt), plain(op.Type)))
			}
			return nil
		})
	})
	switch len(found) {
	case 0:
		return nil, nil, errors.Join(noneCalled(prefix, "nor does the id of an operation begin so; glassbox history list shows what is kept"), err)
	case 1:
		return a.findOperation(ctx, url, []*localruntime.History{home}, which)
	}
	const most = 10
	more := ""
	if n := len(found) - most; n > 0 {
		found, more = found[:most], fmt.Sprintf("\n  and %d more", n)
	}
	return nil, nil, &sandbox.Error{
		Code: sandbox.CodeInvalid, Field: "operation",
		Message: fmt.Sprintf("%q may be any of these; give more of the id:%s%s", prefix, strings.Join(found, ""), more),
	}
}

// eachHistory opens one history after the other, the newest first. What cannot
// be read of one does not keep the others from being read.
func (a *app) eachHistory(ctx context.Context, url string, list []*localruntime.History, do func(*opened) error) error {
	var faults error
	for _, ref := range list {
		if !holds(ref) {
			continue
		}
		h, err := a.open(ctx, url, ref)
		if err == nil {
			err = errors.Join(do(h), h.close())
		}
		if faults = errors.Join(faults, err); ctx.Err() != nil {
			break
		}
	}
	return faults
}
