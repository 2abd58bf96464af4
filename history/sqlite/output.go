package sqlite

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"database/sql"
	"fmt"
	"io"

	"github.com/glassboxhq/glassbox/sandbox"
)

const (
	// maxAnswer is the most output of one answer, in bytes.
	maxAnswer = 4 << 20
	// maxUnpacked is the most that one packed row may become, in bytes.
	maxUnpacked = 64 << 20
)

// Output implements [history.Reader].
func (s *Store) Output(ctx context.Context, id string, stream sandbox.Stream, offset, length int64) ([]byte, error) {
	const op = "read output"
	switch {
	case stream != sandbox.Stdout && stream != sandbox.Stderr:
		return nil, badStream(stream)
	case offset < 0:
		return nil, sandbox.Invalid("offset", "must not be negative")
	case length < 0:
		return nil, sandbox.Invalid("length", "must not be negative")
	}
	var data []byte
	found := false
	err := s.read(ctx, op, func(q *sql.Tx) error {
		var foreign bool
		var err error
		if foreign, err = s.origin(ctx, q, id); err != nil {
			return err
		}
		found = true
		data, err = readOutput(ctx, q, span{id, stream, offset, min(length, maxAnswer), s.sizeOf(foreign)})
		return err
	})
	if err == nil && !found {
		err = notFound(op, id)
	}
	return data, err
}

// origin finds an operation that is answered, and tells whether another
// program wrote it.
func (s *Store) origin(ctx context.Context, q *sql.Tx, id string) (foreign bool, err error) {
	alive, args := s.alive()
	var ours bool
	err = q.QueryRowContext(ctx, `
		select case when json_valid(e.request_json) then coalesce(json_extract(e.request_json, '$.recorder'), 0) > 0 else 0 end
		from history_events e where e.event_id = ? and `+alive, append([]any{id}, args...)...).Scan(&ours)
	if noRows(err) {
		return false, notFound("find operation", id)
	}
	return !ours, err
}

// span is a part of a stream.
type span struct {
	id             string
	stream         sandbox.Stream
	offset, length int64
	sizes          string // see sizeOf
}

// sizeOf is the size of a row's output. That of our own rows is known from
// the head of the row, unless they may be packed; original_size lies behind
// the data, which SQLite would have to read.
func (s *Store) sizeOf(foreign bool) string {
	if foreign || s.config.Load().packed {
		return "original_size"
	}
	return "length(data)"
}

// readOutput finds the row in which the span begins and reads on from there.
func readOutput(ctx context.Context, q *sql.Tx, at span) ([]byte, error) {
	if at.length == 0 {
		return nil, nil
	}
	rows, err := q.QueryContext(ctx, `select chunk_index, `+at.sizes+`
		from command_output_chunks where event_id = ? and stream = ? order by chunk_index`, at.id, string(at.stream))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var first, last int64
	var passed, end int64 // bytes before the first row and up to the last
	for rows.Next() && end < at.offset+at.length {
		var index, size anyNumber
		if err := rows.Scan(&index, &size); err != nil {
			return nil, err
		}
		last = index.n
		if end <= at.offset {
			first, passed = last, end
		}
		end += size.rowSize()
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if end <= at.offset {
		return nil, nil
	}
	if err := rows.Close(); err != nil {
		return nil, err
	}
	skip := at.offset - passed
	data, err := readRows(ctx, q, at, [2]int64{first, last}, skip+at.length)
	if err != nil {
		return nil, err
	}
	data = data[min(skip, int64(len(data))):]
	return data[:min(at.length, int64(len(data)))], nil
}

// readRows reads rows from the first to the last, until they make enough
// bytes.
func readRows(ctx context.Context, q *sql.Tx, at span, bounds [2]int64, enough int64) ([]byte, error) {
	rows, err := q.QueryContext(ctx, `select data, encoding, original_size from command_output_chunks
		where event_id = ? and stream = ? and chunk_index between ? and ? order by chunk_index`,
		at.id, string(at.stream), bounds[0], bounds[1])
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var data []byte
	for rows.Next() && int64(len(data)) < enough {
		var raw sql.RawBytes
		var encoding anyText
		var size anyNumber
		if err := rows.Scan(&raw, &encoding, &size); err != nil {
			return nil, err
		}
		plain, err := unpack(raw, encoding.text, size.n)
		if err != nil {
			return nil, err
		}
		data = append(data, plain...)
	}
	return data, rows.Err()
}

// anySize stands for a size that the row does not tell.
const anySize = -1

// unpack decodes what a row holds. A row that does not become what it says is
// damaged, or made to fill our memory.
func unpack(raw []byte, encoding string, size int64) ([]byte, error) {
	var r io.Reader
	var err error
	switch encoding {
	case "", "identity":
		return raw, nil
	case "gzip":
		r, err = gzip.NewReader(bytes.NewReader(raw))
	case "zlib":
		r, err = zlib.NewReader(bytes.NewReader(raw))
	default:
		err = fmt.Errorf("encoding %q is not known", encoding)
	}
	var plain []byte
	if err == nil {
		plain, err = io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	}
	switch {
	case err != nil:
	case len(plain) > maxUnpacked:
		err = fmt.Errorf("it becomes more than %d bytes", maxUnpacked)
	case size != anySize && int64(len(plain)) != size:
		err = fmt.Errorf("it becomes %d bytes, not %d", len(plain), size)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: unpack row: %w", errScan, err)
	}
	return plain, nil
}
