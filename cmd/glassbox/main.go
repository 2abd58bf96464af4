// Command glassbox runs an AI agent's work in sandboxes and shows the exact
// record of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/glassboxhq/glassbox/internal/localruntime"
)

// launchArg starts this program as the first process of a sandbox's engine, in
// mounts of its own. It is no command for people.
const launchArg = "launch-sandbox"

func main() {
	if len(os.Args) > 1 && os.Args[1] == launchArg {
		if err := localruntime.Launch(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "glassbox:", err)
			os.Exit(1)
		}
		return
	}
	// A reader that goes is an error of the write, to be cleaned up after like
	// any other; without this the program would die of it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute runs one command line and returns the exit code: that of the command
// in the sandbox where one was run, else 2 for a wrong call and 1 for a fault,
// or faultCode from what passes on the code of a command.
func execute(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	a := &app{in: in, out: out, err: errs}
	root := a.root()
	root.SetArgs(args)
	called, err := root.ExecuteContextC(ctx)
	err = errors.Join(err, a.unknown, a.close(ctx))
	if err == nil {
		return 0
	}
	if errors.Is(err, syscall.EPIPE) {
		return pipeCode
	}
	code, ok := errors.AsType[exitCode](err)
	if ok && err.Error() == code.Error() { // there is nothing else to tell
		return int(code)
	}
	fmt.Fprintln(errs, "glassbox:", plainLines(err.Error()))
	if ok {
		return int(code)
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return 2
	}
	if called.Annotations[passesCode] != "" {
		if ctx.Err() != nil {
			return interruptCode
		}
		return faultCode
	}
	return 1
}

// passesCode annotates a command that exits with the code of what it runs.
const passesCode = "passes_code"

// The codes of what passes on the code of a command, where that has none.
const (
	faultCode     = 125 // of Glassbox itself, as docker run has it
	timeoutCode   = 124 // as timeout(1) has it
	interruptCode = 128 + int(syscall.SIGINT)
)

// exitCodes is what the help of such a command says.
const exitCodes = `
Exit codes: that of the command, 128 + N if signal N ended it; 124 stopped at
--timeout; 125 Glassbox itself could not do it; 130 Ctrl-C; 2 a wrong call.`

// pipeCode is what a shell tells of a program that a closed pipe has ended.
const pipeCode = 128 + int(syscall.SIGPIPE)

// exitCode ends the program with the code of the command in the sandbox.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// usageError is a call that cannot be meant.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() + "; see --help" }
func (e *usageError) Unwrap() error { return e.err }

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }
