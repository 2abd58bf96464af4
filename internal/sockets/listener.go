package sockets

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// listening is the state of a listening socket in /proc/net/tcp.
const listening = "0A"

// OurListener reports whether everything that listens at a TCP port of this
// machine belongs to the user of this process: only then may it be sent what
// is for this user. Where that cannot be known, the answer is no.
func OurListener(port string) bool {
	want, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return false
	}
	found := false
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue // no such family
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) < 8 || fields[3] != listening {
				continue
			}
			_, hex, ok := strings.Cut(fields[1], ":")
			at, err := strconv.ParseUint(hex, 16, 16)
			if !ok || err != nil || at != want {
				continue
			}
			if fields[7] != strconv.Itoa(os.Getuid()) {
				return false
			}
			found = true
		}
	}
	return found
}
