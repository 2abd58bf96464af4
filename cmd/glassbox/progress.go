package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// progressAfter is how long nothing is said: what is quick needs no words.
const progressAfter = 400 * time.Millisecond

// progress tells a person at a terminal what is waited for, and for how long,
// until the returned function is called.
func (a *app) progress(what string) (done func()) {
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
				said = true
				fmt.Fprintf(f, "\r\x1b[Kglassbox: %s … %.0fs", what, time.Since(began).Seconds())
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
