package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/history/sqlite"
	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

const runLength = 150 // operations in a run

// agents make up what three of them do, one run after the other.
type agents struct {
	rand *rand.Rand
	at   time.Time
	pace time.Duration
	n    int
	who  history.Actor
}

// act is an operation with its end, and what it printed.
type act struct {
	op  *history.Operation
	out []sandbox.Chunk
	end history.End
}

func (a *agents) next() *act {
	if a.n%runLength == 0 {
		name := []string{"research-agent", "code-reviewer", "数据分析员"}[a.rand.IntN(3)]
		a.who = history.Actor{Type: history.Agent, ID: name, Thread: fmt.Sprintf("thread-%d", a.n/runLength%40), Run: fmt.Sprintf("run-%04d", a.n/runLength)}
	}
	a.n++
	a.at = a.at.Add(a.pace)
	took := time.Duration(a.rand.ExpFloat64() * float64(a.pace) / 2)
	act := a.command()
	if a.rand.IntN(2) == 0 {
		act = a.file()
	}
	act.op.ID, act.op.Actor, act.op.Source, act.op.StartedAt = id.New(), a.who, history.SourceSDK, a.at
	act.end.At, act.end.OutputComplete = a.at.Add(took), true
	for i := range act.out {
		act.out[i].Time = act.end.At
	}
	return act
}

func (a *agents) command() *act {
	line := []string{"pytest -q tests/test_fetch.py", "go build ./...", "git status --short", "grep -rn 订单 src", "python3 run.py --step %d"}[a.rand.IntN(5)]
	if line[len(line)-1] == 'd' {
		line = fmt.Sprintf(line, a.rand.IntN(1000))
	}
	op := &history.Operation{
		Type: history.CommandExecute, Request: history.EncodeRequest(map[string]any{"command": line, "cwd": "/workspace"}),
		Command: &history.Command{Line: line, Dir: "/workspace"},
	}
	code, status, text := 0, sandbox.Succeeded, fmt.Sprintf("step %d of 1000: 处理完成\n", a.rand.IntN(1000))
	out := []sandbox.Chunk{{Stream: sandbox.Stdout, Data: []byte(text)}}
	if a.rand.IntN(30) == 0 {
		code, status = 1, sandbox.Unsuccessful
		out = append(out, sandbox.Chunk{Stream: sandbox.Stderr, Data: []byte("Traceback (most recent call last):\nValueError: 库存不足\n")})
	}
	return &act{op: op, out: out, end: history.End{Status: status, ExitCode: &code}}
}

func (a *agents) file() *act {
	path := fmt.Sprintf("/workspace/src/part_%d/module_%d.py", a.rand.IntN(40), a.rand.IntN(25))
	kind := []string{history.FileRead, history.FileRead, history.FileWrite, history.FileEdit}[a.rand.IntN(4)]
	op := &history.Operation{
		Type: kind, Request: history.EncodeRequest(map[string]any{"path": path}),
		File: &history.File{Path: path, Change: kind[len("file."):]},
	}
	end := history.End{Status: sandbox.Succeeded, File: &history.File{Path: path, Change: op.File.Change}}
	if kind != history.FileRead {
		end.File.Diff = fmt.Sprintf("--- a%s\n+++ b%s\n@@ -1,2 +1,3 @@\n import time\n+cap = %d\n def fetch(url):\n", path, path, a.rand.IntN(100))
	}
	return &act{op: op, end: end}
}

func (a *act) record(ctx context.Context, store *sqlite.Store) error {
	if err := store.Begin(ctx, a.op); err != nil {
		return err
	}
	a.end.Chunks = a.out
	return store.Finish(ctx, a.op.ID, &a.end)
}
