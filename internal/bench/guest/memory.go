package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// watchMemory looks at a process again and again until stdin ends, and tells
// the most that it held. The kernel of a sandbox keeps no such mark itself.
func watchMemory(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("memory", flag.ContinueOnError)
	pid := flags.Int("pid", 0, "of the process")
	every := flags.Duration("every", 20*time.Millisecond, "how often to look")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, in) // its end is what is waited for
	}()
	tick := time.NewTicker(*every)
	defer tick.Stop()
	most := int64(0)
	for {
		held, err := resident(*pid)
		if err != nil {
			return err
		}
		most = max(most, held)
		select {
		case <-tick.C:
		case <-ended:
			_, err := fmt.Fprintln(out, most)
			return err
		}
	}
}

// resident reads VmRSS of a process, in bytes.
func resident(pid int) (int64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		if fields := bytes.Fields(lines.Bytes()); len(fields) == 3 && string(fields[0]) == "VmRSS:" {
			kib, err := strconv.ParseInt(string(fields[1]), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("process %d tells no VmRSS", pid)
}
