package sqlite

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"database/sql"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

const (
	// maxRow is the most output that one row holds, in bytes.
	maxRow = 16 << 10
	// maxRuns bounds the id of one change in the feed.
	maxRuns = 64
	// maxAnswer is the most output of one answer, in bytes.
	maxAnswer = 4 << 20
	// maxUnpacked is the most that one packed row may become, in bytes.
	maxUnpacked = 64 << 20
)

// streams gives each output stream its place in running.streams.
var streams = [2]sandbox.Stream{sandbox.Stdout, sandbox.Stderr}

// output is what an Append adds: pieces of at most maxRow bytes, copied from
// the caller's, which may be used again when Append returns early.
type output struct {
	pieces []piece
	size   int
}

type piece struct {
	stream int // index in streams
	offset int64
	data   []byte
	at     string
	index  int // of its row; set by plan
}

// Append implements [history.Writer]. What lies before the end of what is
// kept is skipped, so an Append may be repeated.
func (s *Store) Append(ctx context.Context, id string, chunks []sandbox.Chunk) error {
	out, err := newOutput(chunks)
	if err != nil {
		return err
	}
	return s.submit(ctx, "append output", 256+out.size, func(w *writer) error {
		r, err := w.lookup(id)
		if err != nil {
			return err
		}
		if _, err := settled("append output", id, r, ""); err != nil {
			return err
		}
		rows, err := r.plan(out)
		if err != nil {
			return err
		}
		return w.store(id, r, rows)
	})
}

// newOutput joins and cuts chunks into pieces that fill rows.
func newOutput(chunks []sandbox.Chunk) (*output, error) {
	out := &output{}
	total := 0
	for _, chunk := range chunks {
		total += len(chunk.Data)
	}
	data := make([]byte, 0, total)
	for _, chunk := range chunks {
		stream := 0
		switch chunk.Stream {
		case sandbox.Stdout:
		case sandbox.Stderr:
			stream = 1
		default:
			return nil, badStream(chunk.Stream)
		}
		offset := chunk.Offset
		for rest := chunk.Data; len(rest) > 0; {
			last := out.open(stream, offset)
			if last == nil {
				out.pieces = append(out.pieces, piece{
					stream: stream, offset: offset, data: data[len(data):], at: history.FormatTime(chunk.Time),
				})
				last = &out.pieces[len(out.pieces)-1]
			}
			n := min(len(rest), maxRow-len(last.data))
			data = append(data, rest[:n]...)
			last.data = last.data[:len(last.data)+n]
			rest, offset = rest[n:], offset+int64(n)
		}
	}
	out.size = total
	return out, nil
}

// open returns the last piece if the next byte of stream belongs into it.
func (o *output) open(stream int, offset int64) *piece {
	if len(o.pieces) == 0 {
		return nil
	}
	last := &o.pieces[len(o.pieces)-1]
	if last.stream != stream || len(last.data) >= maxRow || last.offset+int64(len(last.data)) != offset {
		return nil
	}
	return last
}

// plan gives the pieces their rows, without what is already kept. It changes
// nothing, and refuses output that would leave a gap.
func (r *running) plan(out *output) ([]piece, error) {
	ends := r.streams
	rows := make([]piece, 0, len(out.pieces))
	for _, p := range out.pieces {
		end := &ends[p.stream]
		switch skip := end.size - p.offset; {
		case skip < 0:
			return nil, sandbox.Invalid("chunks", fmt.Sprintf("%s must go on at offset %d, not at %d",
				streams[p.stream], end.size, p.offset))
		case skip >= int64(len(p.data)):
			continue
		case skip > 0:
			p.data, p.offset = p.data[skip:], end.size
		}
		p.index = end.next
		end.next++
		end.size += int64(len(p.data))
		rows = append(rows, p)
	}
	return rows, nil
}

// store writes planned rows and tells the feed.
func (w *writer) store(id string, r *running, rows []piece) error {
	for len(rows) > 0 {
		runs, n := describe(rows)
		for _, p := range rows[:n] {
			err := w.conn.exec(`
				insert into command_output_chunks (event_id, stream, chunk_index, data, original_size, created_at)
				values (?, ?, ?, ?, ?, ?)`,
				id, string(streams[p.stream]), p.index, p.data, len(p.data), p.at)
			if err != nil {
				return err
			}
			r.streams[p.stream] = place{next: p.index + 1, size: p.offset + int64(len(p.data))}
			w.pages += 3 + len(p.data)/4096
		}
		at := history.FormatTime(w.s.opts.Now())
		if err := w.change(id+":output:"+runs, id, history.OutputAppended, at); err != nil {
			return err
		}
		w.pages += 3
		rows = rows[n:]
	}
	return nil
}

// describe names the first n rows for the id of a change, as in
// "stdout:0-63,stderr:0".
func describe(rows []piece) (name string, n int) {
	var b strings.Builder
	for runs := 0; n < len(rows) && runs < maxRuns; runs++ {
		first := rows[n]
		last := first.index
		for n++; n < len(rows) && rows[n].stream == first.stream && rows[n].index == last+1; n++ {
			last++
		}
		if runs > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(streams[first.stream]))
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(first.index))
		if last > first.index {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(last))
		}
	}
	return b.String(), n
}

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
		data, err = readOutput(ctx, q, span{id, stream, offset, min(length, maxAnswer), foreign})
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
	foreign        bool
}

// sizeOf is the size of a row's output. That of our own rows is known from
// the head of the row; original_size lies behind the data, which SQLite would
// have to read.
func sizeOf(foreign bool) string {
	if foreign {
		return "original_size"
	}
	return "length(data)"
}

// readOutput finds the row in which the span begins and reads on from there.
func readOutput(ctx context.Context, q *sql.Tx, at span) ([]byte, error) {
	if at.length == 0 {
		return nil, nil
	}
	rows, err := q.QueryContext(ctx, `select chunk_index, `+sizeOf(at.foreign)+`
		from command_output_chunks where event_id = ? and stream = ? order by chunk_index`, at.id, string(at.stream))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var first, last int
	var passed, end int64 // bytes before the first row and up to the last
	for rows.Next() && end < at.offset+at.length {
		var size int64
		if err := rows.Scan(&last, &size); err != nil {
			return nil, err
		}
		if end <= at.offset {
			first, passed = last, end
		}
		end += size
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
	data, err := readRows(ctx, q, at, first, last)
	if err != nil {
		return nil, err
	}
	data = data[min(at.offset-passed, int64(len(data))):]
	return data[:min(at.length, int64(len(data)))], nil
}

func readRows(ctx context.Context, q *sql.Tx, at span, first, last int) ([]byte, error) {
	rows, err := q.QueryContext(ctx, `select data, encoding, original_size from command_output_chunks
		where event_id = ? and stream = ? and chunk_index between ? and ? order by chunk_index`,
		at.id, string(at.stream), first, last)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var data []byte
	for rows.Next() {
		var raw sql.RawBytes
		var encoding string
		var size int64
		if err := rows.Scan(&raw, &encoding, &size); err != nil {
			return nil, err
		}
		plain, err := unpack(raw, encoding, size)
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
