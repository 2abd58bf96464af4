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

// beginning looks for the operation whose id begins with a word.
type beginning struct {
	word  string
	which string   // the last that was found
	found []string // what each stands for
}

func (b *beginning) look(op *history.Operation) error {
	if strings.HasPrefix(op.ID, b.word) {
		b.which = op.ID
		b.found = append(b.found, fmt.Sprintf("\n  %s  %s  %s", op.ID, moment(op.StartedAt), plain(op.Type)))
	}
	return nil
}

// pick returns the only one that was found.
func (b *beginning) pick(hint string) (string, error) {
	switch len(b.found) {
	case 0:
		return "", noneCalled(b.word, "nor does the id of an operation begin so; "+hint)
	case 1:
		return b.which, nil
	}
	const most = 10
	list, more := b.found, ""
	if n := len(list) - most; n > 0 {
		list, more = list[:most], fmt.Sprintf("\n  and %d more", n)
	}
	return "", &sandbox.Error{
		Code: sandbox.CodeInvalid, Field: "operation",
		Message: fmt.Sprintf("%q may be any of these; give more of the id:%s%s", b.word, strings.Join(list, ""), more),
	}
}

// findPrefix looks in every history for the operation whose id begins so.
func (a *app) findPrefix(ctx context.Context, url string, list []*localruntime.History, prefix string) (*opened, *history.Operation, error) {
	b := beginning{word: prefix}
	var home *localruntime.History
	err := a.eachHistory(ctx, url, list, func(h *opened) error {
		before := len(b.found)
		err := h.operations(ctx, history.Filter{}, b.look)
		if len(b.found) > before {
			home = h.ref
		}
		return err
	})
	which, pickErr := b.pick("glassbox history list shows what is kept")
	switch {
	case len(b.found) == 0:
		return nil, nil, errors.Join(pickErr, err)
	case pickErr != nil:
		return nil, nil, pickErr
	}
	return a.findOperation(ctx, url, []*localruntime.History{home}, which)
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
