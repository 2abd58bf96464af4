// Command compat runs the public clients that [matrix.Clients] lists against a
// glassbox serve of its own, each directly and through the server's proxy, and
// keeps what came of it in results.json.
//
//	go run ./internal/compat -list          what each client needs, NAME|PYTHON|PACKAGES
//	go run ./internal/compat NAME=PROGRAM   runs a client with that Python or Node.js
//	go run ./internal/compat NAME=!REASON   leaves one out
//
// scripts/test-clients.sh calls it so. A scenario prints "ok NAME" or "FAIL
// NAME: reason" for each of its steps, and how many there were.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/glassboxhq/glassbox/internal/compat/matrix"
	"github.com/glassboxhq/glassbox/internal/ownserver"
)

const (
	scenarios   = "internal/compat/scenarios"
	resultsFile = "internal/compat/results.json"
	image       = "python:3.12"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	list := flag.Bool("list", false, "print what each client needs")
	flag.Parse()
	if *list {
		printNeeds(os.Stdout)
		return
	}
	if err := run(ctx, flag.Args(), os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
}

func printNeeds(out io.Writer) {
	for _, c := range matrix.Clients {
		fmt.Fprintf(out, "%s|%s|%s\n", c.Name, c.Python, strings.Join(c.Packages, " "))
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	trials, err := parse(args, out)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "glassbox-compat-")
	if err != nil {
		return err
	}
	program, err := filepath.Abs("bin/glassbox")
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	server, err := ownserver.Start(&ownserver.Options{
		Program: program, Recorder: os.Getenv("GLASSBOX_RECORDER"), Dir: dir, Log: progress,
		Args: []string{"--image-alias", image + "=host"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end(ctx, server, progress)) }()
	b := &bench{server: server, program: program, dir: dir, progress: progress}
	if b.key, err = server.Key(); err != nil {
		return err
	}
	if err := b.runAll(ctx, trials); err != nil {
		return err
	}
	return judge(trials, out)
}

// parse turns NAME=PROGRAM into the trials of a client, and tells which are
// left out.
func parse(args []string, out io.Writer) ([]*trial, error) {
	var trials []*trial
	for _, arg := range args {
		name, program, _ := strings.Cut(arg, "=")
		c := matrix.Find(name)
		switch {
		case c == nil || program == "":
			return nil, fmt.Errorf("%q is no NAME=PROGRAM of a client; -list lists them", arg)
		case strings.HasPrefix(program, "!"):
			fmt.Fprintf(out, "not run: %s: %s; its row stays as it was\n", name, program[1:])
			continue
		}
		for _, way := range matrix.Ways {
			trials = append(trials, &trial{client: c, way: way, program: program})
		}
	}
	if len(trials) == 0 {
		return nil, errors.New("there is no client to run")
	}
	return trials, nil
}

// end deletes what scenarios that failed have left, and stops the server.
func end(ctx context.Context, server *ownserver.Server, progress io.Writer) error {
	left, err := server.Sweep(context.WithoutCancel(ctx))
	if len(left) > 0 {
		fmt.Fprintln(progress, "sandboxes that were left:", strings.Join(left, " "))
	}
	return errors.Join(err, server.Stop())
}

// judge keeps the results and tells what is not as it should be. On CI's
// machine a change is a fault: the page would not be true.
func judge(trials []*trial, out io.Writer) error {
	older, err := matrix.Read(resultsFile)
	if err != nil {
		return err
	}
	ran, all := matrix.Results{}, older.Clone()
	for _, t := range trials {
		ran.Set(t.client.Name, t.way, t.result)
		all.Set(t.client.Name, t.way, t.result)
	}
	fmt.Fprint(out, ran.Text())
	changes, unexpected := ran.Changes(older), ran.Unexpected()
	if len(changes) > 0 {
		fmt.Fprintf(out, "changed, now in %s:\n  %s\n", resultsFile, strings.Join(changes, "\n  "))
		if err := all.Write(resultsFile); err != nil {
			return err
		}
	}
	switch {
	case len(unexpected) > 0:
		return fmt.Errorf("not as internal/compat/matrix knows it:\n  %s", strings.Join(unexpected, "\n  "))
	case len(changes) > 0 && os.Getenv("CI") == "true":
		return errors.New("the results have changed: run make test-clients, and commit what it writes")
	}
	return nil
}
