package recorded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// carried is what comes of a request that carries content.
type carried struct {
	given bool // the caller named the operation
	into  any  // the answer
	done  *sandbox.Uploaded
}

// carry sends content. It is repeated after a fault only where the content
// can be read again.
func (s *Session) carry(ctx context.Context, r *request, content io.Reader, c *carried) error {
	r.body = content
	seeker, ok := content.(io.Seeker)
	if !ok {
		return s.put(ctx, r, c)
	}
	start, err := seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return s.put(ctx, r, c)
	}
	if b, ok := content.(*bytes.Reader); ok {
		r.size = int64(b.Len())
	}
	return s.again(ctx, func(ctx context.Context) error {
		if _, err := seeker.Seek(start, io.SeekStart); err != nil {
			return &sandbox.Error{Op: r.op, Code: sandbox.CodeInternal, Message: "read the content again", Err: err}
		}
		err := s.put(ctx, r, c)
		if !c.given && ctx.Err() == nil && errors.Is(err, sandbox.ErrCancelled) {
			// The recorder saw the last try cut before its end. That operation is
			// over; this is another.
			r.id = id.New()
			if _, err := seeker.Seek(start, io.SeekStart); err != nil {
				return err
			}
			err = s.put(ctx, r, c)
		}
		return err
	})
}

func (s *Session) put(ctx context.Context, r *request, c *carried) error {
	mine := *r
	mine.body = struct{ io.Reader }{r.body} // the transport would close what is not ours
	resp, err := s.exchange(ctx, &mine)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		body, err := s.refusal(ctx, r, resp)
		var left wire.UploadFault
		if json.Unmarshal(body, &left) == nil {
			c.done = left.Uploaded
		}
		return err
	}
	defer resp.Body.Close()
	if err := decodeInto(resp.Body, c.into); err != nil {
		return s.unreachable(ctx, r.op, err)
	}
	return nil
}
