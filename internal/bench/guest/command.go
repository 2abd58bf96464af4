package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// timeExec times what no recorder can do without: fork, exec and wait.
func timeExec(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("exec", flag.ContinueOnError)
	n := flags.Int("n", 10, "how often")
	if err := flags.Parse(args); err != nil {
		return err
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		return err
	}
	took := make([]time.Duration, *n)
	for i := range took {
		began := time.Now()
		if err := exec.Command(shell, "-c", "true").Run(); err != nil { //nolint:noctx // it is what is timed
			return err
		}
		took[i] = time.Since(began)
	}
	for _, d := range took {
		if _, err := fmt.Fprintln(out, d.Nanoseconds()); err != nil {
			return err
		}
	}
	return nil
}

// pipeBytes is what an ordinary pipe holds: a larger buffer reads no faster.
const pipeBytes = 64 << 10

// timePipe starts a program and reads its output to the end.
func timePipe(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("pipe: name a program")
	}
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // it is what is timed
	began := time.Now()
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	buffer := make([]byte, pipeBytes)
	total := 0
	for err == nil {
		var n int
		n, err = pipe.Read(buffer)
		total += n
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, time.Since(began).Nanoseconds(), total)
	return err
}
