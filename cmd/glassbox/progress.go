package main

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

// progressAfter is how long nothing is said: what is quick needs no words.
const progressAfter = 400 * time.Millisecond

// progress tells a person at a terminal what is waited for, and for how long,
// until the returned function is called.
func (a *app) progress(what string) (done func()) { return a.counting(what, nil) }

// counting is progress with a number of bytes.
func (a *app) counting(what string, bytes *atomic.Int64) (done func()) {
	return a.showing(func() string {
		if bytes == nil {
			return what + " …"
		}
		return what + " … " + amount(bytes.Load()) + ","
	})
}

// changing is progress with words that change.
func (a *app) changing() (what *atomic.Pointer[string], done func()) {
	what = &atomic.Pointer[string]{}
	return what, a.showing(func() string {
		if text := what.Load(); text != nil {
			return *text + ","
		}
		return ""
	})
}

func (a *app) showing(what func() string) (done func()) {
	f, ok := a.err.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		began, said := time.Now(), false
		tick := time.NewTicker(progressAfter)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				text := what()
				if text == "" {
					continue
				}
				said = true
				fmt.Fprintf(f, "\r\x1b[Kglassbox: %s %.0fs", plain(text), time.Since(began).Seconds())
			case <-stop:
				if said {
					fmt.Fprint(f, "\r\x1b[K")
				}
				return
			}
		}
	})
	return func() { close(stop); writer.Wait() }
}

// amount shows a number of bytes as people read it.
func amount(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d bytes", n)
	}
	value, names := float64(n)/unit, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for value >= unit && len(names) > 1 {
		value, names = value/unit, names[1:]
	}
	return fmt.Sprintf("%.1f %s", value, names[0])
}
