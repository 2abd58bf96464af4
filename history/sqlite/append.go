package sqlite

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// maxRuns bounds the id of one change in the feed.
const maxRuns = 64

// streams gives each output stream its place in running.streams.
var streams = [2]sandbox.Stream{sandbox.Stdout, sandbox.Stderr}

// output is what an Append adds: pieces of at most maxRow bytes, copied from
// the caller's, which may be used again when Append returns early.
type output struct {
	pieces []piece
	size   int
	maxRow int // the most output that one row holds, in bytes
}

type piece struct {
	stream int // index in streams
	offset int64
	data   []byte
	at     string
	index  int // of its row; set by plan
}

// Append implements [history.Writer]. Output that would leave a gap is refused,
// so that what is kept of a stream is always its beginning.
func (s *Store) Append(ctx context.Context, id string, chunks []sandbox.Chunk) error {
	out, err := s.newOutput(chunks)
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
		rows, gap := r.plan(out)
		if gap != nil {
			return gap
		}
		return w.store(id, r, rows)
	})
}

// newOutput joins and cuts chunks into pieces that fill rows.
func (s *Store) newOutput(chunks []sandbox.Chunk) (*output, error) {
	out := &output{maxRow: int(s.settings().OutputChunkBytes)}
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
			n := min(len(rest), out.maxRow-len(last.data))
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
	if last.stream != stream || len(last.data) >= o.maxRow || last.offset+int64(len(last.data)) != offset {
		return nil
	}
	return last
}

// plan gives the pieces their rows, without what is already kept. It changes
// nothing. If output is missing before a piece, that piece gets no row and the
// error tells so.
func (r *running) plan(out *output) (rows []piece, gap error) {
	ends := r.streams
	rows = make([]piece, 0, len(out.pieces))
	for _, p := range out.pieces {
		end := &ends[p.stream]
		switch skip := end.size - p.offset; {
		case skip < 0:
			gap = sandbox.Invalid("chunks", fmt.Sprintf("%s must go on at offset %d, not at %d",
				streams[p.stream], end.size, p.offset))
			continue
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
	return rows, gap
}

// store writes planned rows and tells the feed.
func (w *writer) store(id string, r *running, rows []piece) error {
	for len(rows) > 0 {
		runs, n := describe(rows)
		for _, p := range rows[:n] {
			data, encoding := w.s.pack(p.data)
			err := w.conn.exec(`
				insert into command_output_chunks (event_id, stream, chunk_index, data, encoding, original_size, created_at)
				values (?, ?, ?, ?, ?, ?, ?)`,
				id, string(streams[p.stream]), p.index, data, encoding, len(p.data), p.at)
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
