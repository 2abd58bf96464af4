// Command guest is the other arm of the measurements: it does inside a sandbox
// what the recorder does there, with nothing around it, and prints what each
// took.
//
//	guest exec -n 10             fork, exec and wait of "sh -c true": nanoseconds, one a line
//	guest pipe PROGRAM ARG...    read a program's output through a pipe: nanoseconds and bytes
//	guest begin -dir DIR         durable Begin of a history, and a bare commit of the same rows
//	guest append -dir DIR        operations a second, by many callers at once
//	guest growth -dir DIR        an operation in a history that has grown and in a young one
//	guest recovery -dir DIR      a large history after its writer was killed: opening it, the first record
//	guest fill -file FILE        record until killed
//	guest memory -pid PID        the most that a process holds until stdin ends: bytes
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("say what to do")
	}
	switch what, rest := args[0], args[1:]; what {
	case "exec":
		return timeExec(rest, out)
	case "pipe":
		return timePipe(rest, out)
	case "begin":
		return timeBegin(rest, out)
	case "append":
		return countAppend(rest, out)
	case "growth":
		return growth(rest, out)
	case "recovery":
		return recovery(rest, out)
	case "fill":
		return fill(rest, out)
	case "memory":
		return watchMemory(rest, in, out)
	default:
		return fmt.Errorf("%q is not known", what)
	}
}
