package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"github.com/glassboxhq/glassbox/internal/bench/report"
)

// remote is what the rows about a real OpenSandbox server share: the clients
// that are compared, each with a sandbox of its own.
type remote struct {
	b        *bench
	url, key string
	clients  map[string]*worker
	bare     *bare
	seed     bool // also where the Python SDK takes minutes
}

// The clients, as arms are named.
const (
	armOurs     = "Glassbox"
	armOfficial = "official Python SDK"
	armSeed     = "agent-sandbox-backends"
	armWire     = "the wire"
	armDocker   = "docker exec"
)

var clients = []struct{ arm, which string }{{armOurs, "glassbox"}, {armOfficial, "official"}, {armSeed, "seed"}}

func newRemote(ctx context.Context, b *bench, seed bool) (_ *remote, err error) {
	r := &remote{b: b, url: os.Getenv("GLASSBOX_OPENSANDBOX"), key: os.Getenv("GLASSBOX_OPENSANDBOX_KEY"), clients: map[string]*worker{}, seed: seed}
	if r.url == "" {
		return nil, errors.New("there is no OpenSandbox server: run make bench-opensandbox")
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close(ctx))
		}
	}()
	if r.bare, err = newBare(ctx, r.url, r.key); err != nil {
		return nil, err
	}
	for _, c := range clients {
		if r.clients[c.arm], err = r.open(ctx, c.which, r.url); err != nil {
			return nil, fmt.Errorf("%s: %w", c.arm, err)
		}
	}
	return r, nil
}

// open starts a client and has it make its sandbox.
func (r *remote) open(ctx context.Context, which, url string) (*worker, error) {
	w, err := startWorker(ctx, which, url, r.key)
	if err == nil {
		_, err = w.do(&task{Do: "open"})
	}
	return w, err
}

func (r *remote) close(ctx context.Context) (err error) {
	for _, w := range r.clients {
		if w != nil {
			err = errors.Join(err, w.stop())
		}
	}
	if r.bare != nil {
		err = errors.Join(err, r.bare.close(ctx))
	}
	return err
}

// remoteRows are measured in this order.
var remoteRows = []struct {
	name string
	run  func(*remote, context.Context) (*report.Row, error)
}{
	{"create", (*remote).create},
	{"true", (*remote).true1},
	{"lines", (*remote).lines},
	{"bytes", (*remote).bytes},
	{"write-1k", func(r *remote, ctx context.Context) (*report.Row, error) { return r.file(ctx, "write", 1<<10, 20) }},
	{"read-1k", func(r *remote, ctx context.Context) (*report.Row, error) { return r.file(ctx, "read", 1<<10, 20) }},
	{"write-10m", func(r *remote, ctx context.Context) (*report.Row, error) { return r.file(ctx, "write", 10<<20, 5) }},
	{"read-10m", func(r *remote, ctx context.Context) (*report.Row, error) { return r.file(ctx, "read", 10<<20, 5) }},
	{"many", (*remote).many},
	{"turns", (*remote).turns},
	{"peak", (*remote).peak},
	{"requests-create", func(r *remote, ctx context.Context) (*report.Row, error) {
		return r.requests(ctx, "a new sandbox up to its first result")
	}},
	{"requests-true", func(r *remote, ctx context.Context) (*report.Row, error) {
		return r.requests(ctx, "`true`", &task{Do: "run", Line: "true"})
	}},
	{"requests-files", func(r *remote, ctx context.Context) (*report.Row, error) {
		return r.requests(ctx, "a file of 1 kB written and read", &task{Do: "write", Path: "/tmp/r", N: 1 << 10}, &task{Do: "read", Path: "/tmp/r"})
	}},
}

// measureRemote measures the rows whose names begin so.
func (b *bench) measureRemote(ctx context.Context, o *options, r *report.Report) (err error) {
	at, err := newRemote(ctx, b, o.long)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.close(ctx)) }()
	for _, m := range remoteRows {
		if !strings.HasPrefix(m.name, o.only) {
			continue
		}
		row, err := m.run(at, ctx)
		if err != nil {
			return fmt.Errorf("row %s: %w", m.name, err)
		}
		row.Name = m.name
		row.Judge()
		r.Rows = append(r.Rows, row)
		fmt.Fprintln(os.Stderr, m.name)
	}
	return nil
}

// arms are the clients with the same task; want bytes or commands are to come
// of it, or at least nearly: the others lose line breaks.
func (r *remote) arms(t *task, want int, seed bool) []arm {
	var list []arm
	for _, c := range clients {
		if c.arm == armSeed && !seed {
			continue
		}
		list = append(list, arm{c.arm, func(context.Context) ([]float64, error) {
			d, err := r.clients[c.arm].do(t)
			if err == nil && (d.N > want || d.N < want*4/5 || c.arm == armOurs && d.N != want) {
				err = fmt.Errorf("got %d bytes, want %d", d.N, want)
			}
			if err != nil {
				return nil, err
			}
			return []float64{d.Seconds}, nil
		}})
	}
	return list
}

// with adds arms without a client.
func (r *remote) with(list []arm, line string, wire bool) []arm {
	if wire {
		list = append(list, bareArm(armWire, line, r.bare.wire))
	}
	return append(list, bareArm(armDocker, line, r.bare.docker))
}

func bareArm(name, line string, run func(context.Context, string) (*done, error)) arm {
	return arm{name, func(ctx context.Context) ([]float64, error) {
		d, err := run(ctx, line)
		if err != nil {
			return nil, err
		}
		return []float64{d.Seconds}, nil
	}}
}

// against puts the arm that ours is judged by beside it.
func against(name string, list []arm) []arm {
	for i := range list {
		if list[i].name == name {
			list[1], list[i] = list[i], list[1]
		}
	}
	return list
}

func (r *remote) create(ctx context.Context) (*report.Row, error) {
	row := &report.Row{Measure: "a new sandbox up to its first result, an installation included", Kind: report.Reported, Unit: report.Seconds}
	var list []arm
	for _, c := range clients {
		list = append(list, arm{c.arm, func(ctx context.Context) ([]float64, error) {
			w, err := startWorker(ctx, c.which, r.url, r.key)
			if err != nil {
				return nil, err
			}
			d, err := w.do(&task{Do: "open"})
			if err = errors.Join(err, w.stop()); err != nil {
				return nil, err
			}
			return []float64{d.Seconds}, nil
		}})
	}
	list = append(list, arm{"the service alone", func(ctx context.Context) ([]float64, error) {
		b, err := newBare(ctx, r.url, r.key)
		if err != nil {
			return nil, err
		}
		return []float64{b.made}, b.close(ctx)
	}})
	return r.b.compare(ctx, row, r.b.rounds(5, 1), list...)
}

func (r *remote) true1(ctx context.Context) (*report.Row, error) {
	row := &report.Row{
		Measure: "`true`, recorded, against execd's own terminal event", Kind: report.Ratio, Unit: report.Seconds, Budget: &report.Budget{Value: 0.2},
	}
	list := against(armWire, r.with(r.arms(&task{Do: "run", Line: "true"}, 0, true), "true", true))
	for i := range 2 { // the others take seconds
		list[i].turn = again(10, list[i].turn)
	}
	return r.b.compare(ctx, row, r.b.rounds(20, 2), list...)
}

// again makes a turn of several.
func again(n int, turn func(context.Context) ([]float64, error)) func(context.Context) ([]float64, error) {
	return func(ctx context.Context) (all []float64, _ error) {
		for range n {
			samples, err := turn(ctx)
			if err != nil {
				return nil, err
			}
			all = append(all, samples...)
		}
		return all, nil
	}
}

func (r *remote) lines(ctx context.Context) (*report.Row, error) {
	row := &report.Row{
		Measure: "100 000 lines, recorded, against `docker exec`", Kind: report.Ratio, Unit: report.Seconds, Budget: &report.Budget{Value: 2},
	}
	const line = "seq 1 100000"
	list := r.with(r.arms(&task{Do: "run", Line: line}, 588895, r.seed || !r.b.short), line, true)
	return r.b.compare(ctx, row, r.b.rounds(5, 1), against(armDocker, list)...)
}

// bytes leaves out the Python SDK unless it is asked for: it takes twenty
// minutes each time.
func (r *remote) bytes(ctx context.Context) (*report.Row, error) {
	row := &report.Row{Measure: "50 MB in lines of 100 bytes", Kind: report.Reported, Unit: report.Seconds}
	line := "yes " + strings.Repeat("0123456789", 9) + "012345678 | head -n 500000"
	list := r.with(r.arms(&task{Do: "run", Line: line}, 50_000_000, r.seed), line, !r.b.short)
	return r.b.compare(ctx, row, r.b.rounds(2, 1), list...)
}

func (r *remote) file(ctx context.Context, do string, size, rounds int) (*report.Row, error) {
	row := &report.Row{Measure: fmt.Sprintf("%s a file of %d kB", do, size>>10), Kind: report.Reported, Unit: report.Seconds}
	t := &task{Do: do, Path: fmt.Sprintf("/tmp/file-%d", size), N: size}
	return r.b.compare(ctx, row, r.b.rounds(rounds, 2), r.arms(t, size, true)...)
}

func (r *remote) many(ctx context.Context) (*report.Row, error) {
	row := &report.Row{
		Measure: "20 × `sleep 0.2` at once, of 32 that may run", Kind: report.Absolute, Unit: report.Seconds, Budget: &report.Budget{Value: 0.5},
	}
	return r.b.compare(ctx, row, r.b.rounds(5, 1), r.arms(&task{Do: "many", Line: "sleep 0.2", N: 20}, 20, r.seed || !r.b.short)...)
}

func (r *remote) turns(ctx context.Context) (*report.Row, error) {
	row := &report.Row{Measure: "50 × `true` in turn", Kind: report.Reported, Unit: report.Seconds}
	return r.b.compare(ctx, row, r.b.rounds(2, 1), r.arms(&task{Do: "turns", Line: "true", N: 50}, 50, r.seed)...)
}

// peak is what the clients have needed for all of this.
func (r *remote) peak(ctx context.Context) (*report.Row, error) {
	row := &report.Row{Measure: "the client's peak memory, of all of the above", Kind: report.Reported, Unit: report.Bytes}
	var list []arm
	for _, c := range clients {
		list = append(list, arm{c.arm, func(context.Context) ([]float64, error) {
			d, err := r.clients[c.arm].do(&task{Do: "run", Line: "true"})
			if err != nil {
				return nil, err
			}
			return []float64{d.Peak}, nil
		}})
	}
	return r.b.compare(ctx, row, 1, list...)
}

// requests counts what a client sends to the server for tasks, or, for none,
// to make its sandbox.
func (r *remote) requests(ctx context.Context, what string, tasks ...*task) (*report.Row, error) {
	row := &report.Row{Measure: "requests to the server: " + what, Kind: report.Reported, Unit: report.Requests}
	to, err := url.Parse(r.url)
	if err != nil {
		return nil, err
	}
	for _, c := range clients {
		var n atomic.Int64
		proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to); p.Out.Host = p.In.Host }}
		way := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			n.Add(1)
			proxy.ServeHTTP(w, req)
		}))
		w, err := r.open(ctx, c.which, way.URL)
		count := n.Load()
		if err == nil && len(tasks) > 0 {
			_, err = w.do(tasks[0]) // what is done once only
			before := n.Load()
			for _, t := range tasks {
				if err == nil {
					_, err = w.do(t)
				}
			}
			count = n.Load() - before
		}
		if w != nil {
			err = errors.Join(err, w.stop())
		}
		way.CloseClientConnections()
		way.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.arm, err)
		}
		row.Arms = append(row.Arms, &report.Arm{Name: c.arm, Samples: 1, P50: float64(count)})
	}
	return row, nil
}
