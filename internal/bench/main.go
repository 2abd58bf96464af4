// Command bench measures what the budgets are about, on a real sandbox of the
// local runtime, and writes docs/bench.json.
//
//	go run ./internal/bench               all rows; exits 1 when a ratio is over its budget
//	go run ./internal/bench -short        fewer rounds, to see that it works
//	go run ./internal/bench -only exec    one row, or those that begin so
//	go run ./internal/bench -long         also the rows that take minutes
//	go run ./internal/bench -opensandbox  our SDK beside the others on a real
//	                                      OpenSandbox server, and docs/bench-opensandbox.json
//
// The rows service-… also have the arm of a real OpenSandbox server with
// Docker where GLASSBOX_OPENSANDBOX names one, as in make bench-opensandbox.
//
// Both arms of a row take turns in one run, in an order drawn from a seed that
// is printed, so that what disturbs the machine disturbs both. How a verdict is
// taken stands in the package report.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/glassboxhq/glassbox/internal/bench/report"
)

const (
	reportFile = "docs/bench.json"
	remoteFile = "docs/bench-opensandbox.json"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) == 3 && os.Args[1] == "worker" {
		err = work(ctx, os.Args[2], os.Stdin, os.Stdout)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	short bool
	long  bool
	real  bool
	only  string
	out   string
	seed  uint64
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&o.short, "short", false, "fewer rounds")
	flags.BoolVar(&o.long, "long", false, "also the rows that take minutes or compare services: "+strings.Join(long, ", "))
	flags.BoolVar(&o.real, "opensandbox", false, "on a real OpenSandbox server; with -long also where the Python SDK takes twenty minutes")
	flags.StringVar(&o.only, "only", "", "measure only the rows whose names begin so")
	flags.StringVar(&o.out, "out", "", "file to write; a full run writes "+reportFile)
	flags.Uint64Var(&o.seed, "seed", 0, "of the order of the arms; 0: a new one")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if o.out == "" && !o.short && o.only == "" {
		if o.out = reportFile; o.real {
			o.out = remoteFile
		}
	}
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	return o, nil
}

func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	list := measurements(o.only, o.long)
	if len(list) == 0 && !o.real {
		return fmt.Errorf("no row begins with %q; there are %s", o.only, strings.Join(names(), ", "))
	}
	if os.Getenv("GLASSBOX_NO_ISOLATION") != "" && !o.real {
		return errors.New("not run: the rows compare with what runs in a sandbox, which needs gVisor")
	}
	r := &report.Report{Machine: machine(ctx), Date: time.Now().UTC().Truncate(time.Second), Commit: commit(ctx), Seed: o.seed, Short: o.short}
	fmt.Fprintf(progress, "seed %d\n", o.seed)
	b := &bench{rng: rand.New(rand.NewPCG(o.seed, 0)), seed: o.seed, short: o.short}
	if o.real {
		r.Machine.Runsc, r.Machine.Docker = "", dockerVersion(ctx)
		if err := b.measureRemote(ctx, o, r); err != nil {
			return err
		}
		return finish(r, o, out)
	}
	if b.server, err = startServer(ctx, progress); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.server.Stop()) }()
	for _, m := range list {
		began := time.Now()
		row, err := m.run(b, ctx)
		if err != nil {
			return fmt.Errorf("row %s: %w", m.name, err)
		}
		row.Name = m.name
		row.Judge()
		r.Rows = append(r.Rows, row)
		fmt.Fprintf(progress, "%s: %.1f s\n", m.name, time.Since(began).Seconds())
	}
	return finish(r, o, out)
}

// finish tells what was found, and fails where a ratio is over its budget.
func finish(r *report.Report, o *options, out io.Writer) error {
	if err := r.Print(out); err != nil {
		return err
	}
	if o.out != "" {
		if err := r.Write(o.out); err != nil {
			return err
		}
	}
	var over []string
	for _, row := range r.Failed() {
		over = append(over, row.Name)
	}
	if len(over) > 0 {
		return fmt.Errorf("over budget, with the whole interval: %s", strings.Join(over, ", "))
	}
	return nil
}

// measurement is one row, and how it is found.
type measurement struct {
	name string
	run  func(*bench, context.Context) (*report.Row, error)
}

var all = []measurement{
	{"true", (*bench).recordedTrue},
	{"true-args", (*bench).recordedArgs},
	{"output-10k", (*bench).recordedOutput},
	{"file-changes", (*bench).fileChanges},
	{"exec", (*bench).againstExec},
	{"lines-100k", (*bench).lines100k},
	{"lines-5m", (*bench).lines5m},
	{"gibibyte", (*bench).gibibyte},
	{"begin", (*bench).begin},
	{"append", (*bench).append},
	{"growth-10k", (*bench).growth10k},
	{"growth-cap", (*bench).growthCap},
	{"growth-1m", (*bench).growth1m},
	{"recovery", (*bench).recovery},
	{"streams", (*bench).streams},
	{"create", (*bench).create},
	{"pause", (*bench).pause},
	{"snapshot", (*bench).snapshot},
	{"from-snapshot", (*bench).fromSnapshot},
	{"parallel", (*bench).parallel},
	{"memory", (*bench).memory},
	{"size", (*bench).size},
	{"service-create", (*bench).serviceCreate},
	{"service-many", (*bench).serviceMany},
	{"service-pause", (*bench).servicePause},
	{"service-download", (*bench).serviceDownload},
	{"service-memory", (*bench).serviceMemory},
}

// long lists the rows that are measured only when they are named or asked for:
// they take minutes, or need another service to say anything.
var long = []string{"growth-1m", "service-create", "service-many", "service-pause", "service-download", "service-memory"}

func names() []string {
	list := make([]string, 0, len(all))
	for _, m := range all {
		list = append(list, m.name)
	}
	return list
}

func measurements(only string, withLong bool) []measurement {
	var list []measurement
	for _, m := range all {
		if m.name == only {
			return []measurement{m}
		}
		if strings.HasPrefix(m.name, only) && (withLong || !slices.Contains(long, m.name)) {
			list = append(list, m)
		}
	}
	return list
}
