package native

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/glassboxhq/glassbox/sandbox"
)

// extent is a part of a file, in bytes.
type extent struct{ offset, length int64 }

// rangeOf finds which bytes of a file of this size are asked for.
func rangeOf(ctx context.Context, f io.Reader, size int64, opts *sandbox.ReadOptions) (extent, error) {
	if opts.Line <= 1 && opts.Lines == 0 {
		part := extent{opts.Offset, max(size-opts.Offset, 0)}
		if opts.Length > 0 {
			part.length = min(part.length, opts.Length)
		}
		return part, nil
	}
	scan := &lineScan{r: reading(ctx, f), buf: make([]byte, 64<<10)}
	if err := scan.skip(max(opts.Line, 1) - 1); err != nil {
		return extent{}, err
	}
	part := extent{offset: scan.at}
	if opts.Lines == 0 {
		part.length = max(size-part.offset, 0)
		return part, nil
	}
	if err := scan.skip(opts.Lines); err != nil {
		return extent{}, err
	}
	part.length = scan.at - part.offset
	return part, nil
}

// lineScan counts lines.
type lineScan struct {
	r    io.Reader
	buf  []byte
	rest []byte // read and not looked at
	at   int64  // how far it has looked
}

// skip passes over n lines, or stops at the end of the file.
func (s *lineScan) skip(n int64) error {
	for n > 0 {
		if len(s.rest) == 0 {
			got, err := s.r.Read(s.buf)
			s.rest = s.buf[:got]
			if got == 0 && errors.Is(err, io.EOF) {
				return nil
			}
			if got == 0 && err != nil {
				return err
			}
		}
		end := bytes.IndexByte(s.rest, '\n')
		if end < 0 {
			s.at, s.rest = s.at+int64(len(s.rest)), nil
			continue
		}
		s.at, s.rest = s.at+int64(end)+1, s.rest[end+1:]
		n--
	}
	return nil
}

// reading ends with ctx, however much there is to read.
func reading(ctx context.Context, r io.Reader) io.Reader { return &bounded{ctx, r} }

type bounded struct {
	ctx context.Context //nolint:containedctx // of the one act that reads
	r   io.Reader
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, sandbox.FromContext(b.ctx, "read")
	}
	return b.r.Read(p)
}
