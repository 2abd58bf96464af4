package record

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox"
)

// What is masked is the copy that the history keeps: the act works with what it
// was given, and whoever follows it live gets that.

// maskOperation masks what an operation says as it begins, who acts too, and counts. A file
// is copied: the act goes on with its own. Names of changed files are not counted.
func maskOperation(m *redact.Masker, op *history.Operation) int {
	var inRequest, inResult, inColumns int
	inActor := op.Actor.Mask(m)
	op.Source, _ = m.Word(op.Source) // the actor's
	op.Request, inRequest = m.JSON(op.Request)
	op.Result, inResult = m.JSON(op.Result)
	if c := op.Command; c != nil {
		inColumns += maskText(m, &c.Line) + maskText(m, &c.Dir)
		c.Env = maskNames(m, c.Env)
	}
	if op.File != nil {
		var n int
		op.File, n = maskFile(m, op.File)
		inColumns += n
	}
	if op.Changes != nil {
		copied := *op.Changes
		for _, list := range []*[]history.FileChange{&copied.Created, &copied.Changed, &copied.Deleted} {
			*list = slices.Clone(*list)
		}
		maskChanges(m, &copied)
		op.Changes = &copied
	}
	return inActor + max(inRequest, inColumns) + inResult // the columns repeat the request
}

func maskFile(m *redact.Masker, f *history.File) (*history.File, int) {
	masked := *f
	return &masked, maskText(m, &masked.Path) + maskText(m, &masked.OldPath) + maskText(m, &masked.Diff)
}

// maskNames masks the names of an environment.
func maskNames(m *redact.Masker, env map[string]string) map[string]string {
	if m.Off() || len(env) == 0 {
		return env
	}
	masked := make(map[string]string, len(env))
	for name, value := range env {
		name, _ = m.Text(name) // as in the request, where it is counted
		masked[name] = value
	}
	return masked
}

func maskText(m *redact.Masker, s *string) (n int) {
	*s, n = m.Text(*s)
	return n
}

// maskEnd masks what an operation says as it ends. The result tells how much
// was masked in all: before is what was already.
func maskEnd(m *redact.Masker, end *history.End, before int) {
	var n int
	end.Result, n = m.End(end.Result)
	if end.File != nil {
		path := end.File.Path
		var inFile int
		end.File, inFile = maskFile(m, end.File)
		_, again := m.Text(path) // was counted as it began
		n += max(inFile-again, 0)
	}
	end.Result = countMasked(end.Result, before+n)
}

// countMasked adds to a result how much was masked.
func countMasked(result json.RawMessage, n int) json.RawMessage {
	if n == 0 {
		return result
	}
	fields := map[string]any{}
	if len(result) > 0 && json.Unmarshal(result, &fields) != nil {
		return result
	}
	fields = maps.Clone(fields)
	fields["redacted"] = n
	return history.Encode(fields)
}

// censor masks the output of one command on its way into the history. What it
// holds back is stored with what follows, or at the end.
type censor struct {
	streams [2]*redact.Stream // nil: nothing is masked
	latest  [2]sandbox.Chunk  // whose time is that of what is held back
	taken   pair              // bytes that came
	stored  pair              // bytes that have been given to the history
	masked  int
}

func newCensor(m *redact.Masker) *censor {
	return &censor{streams: [2]*redact.Stream{m.Stream(), m.Stream()}}
}

// take masks a batch.
func (c *censor) take(batch []sandbox.Chunk) []sandbox.Chunk {
	if c.streams[0] == nil {
		return batch
	}
	masked := make([]sandbox.Chunk, 0, len(batch)+2)
	for _, chunk := range batch {
		i := index(chunk.Stream)
		data, n := c.streams[i].Write(nil, chunk.Data)
		c.masked += n
		c.latest[i], c.taken[i] = chunk, c.taken[i]+int64(len(chunk.Data))
		masked = c.add(masked, chunk, data)
	}
	return masked
}

// end returns what is held back of a command that printed so many bytes. What
// the cap has cut in the middle of what may be a secret is masked, too.
func (c *censor) end(seen pair) []sandbox.Chunk {
	var rest []sandbox.Chunk
	for i, stream := range c.streams {
		if stream == nil {
			continue
		}
		flush := stream.Flush
		if seen[i] > c.taken[i] {
			flush = stream.Cut
		}
		data, n := flush(nil)
		c.masked += n
		rest = c.add(rest, c.latest[i], data)
	}
	return rest
}

func (c *censor) add(list []sandbox.Chunk, chunk sandbox.Chunk, data []byte) []sandbox.Chunk {
	if len(data) == 0 {
		return list
	}
	i := index(chunk.Stream)
	chunk.Offset, chunk.Data = c.stored[i], data
	c.stored[i] += int64(len(data))
	return append(list, chunk)
}

// held returns what of each stream is held back, as it was written.
func (c *censor) held() (raw [2][]byte) {
	for i, stream := range c.streams {
		if stream != nil {
			raw[i] = append([]byte(nil), stream.Held()...)
		}
	}
	return raw
}
