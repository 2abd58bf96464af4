package lock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glassboxhq/glassbox/internal/lock"
)

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lock.NewLimit(2, time.Minute)
		var order []int
		var mu sync.Mutex
		var all sync.WaitGroup
		var working, most atomic.Int32
		for i := range 10 {
			all.Go(func() {
				<-time.After(time.Duration(i) * time.Millisecond) // the order in which they come
				leave, err := l.Enter(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				defer leave()
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				most.Store(max(most.Load(), working.Add(1)))
				<-time.After(time.Second)
				working.Add(-1)
			})
		}
		all.Wait()
		if !slices.IsSorted(order) || most.Load() != 2 {
			t.Errorf("got the order %v with %d at once, want first come first served, two at once", order, most.Load())
		}
	})
}

func TestLimitTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lock.NewLimit(1, time.Minute)
		leave, err := l.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Enter(t.Context()); !errors.Is(err, lock.ErrTimeout) {
			t.Errorf("got %v, want a timeout", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the context", err)
		}
		leave()
		leave, err = l.Enter(t.Context())
		if err != nil {
			t.Fatalf("after those who gave up: %v", err)
		}
		leave()
	})
}

func TestPaths(t *testing.T) {
	for _, tt := range []struct {
		name           string
		first, second  string
		reads, readsTo bool // first and second read
		together       bool
	}{
		{"readers", "/a", "/a", true, true, true},
		{"reader and writer", "/a", "/a", true, false, false},
		{"writers", "/a", "/a", false, false, false},
		{"writers of others", "/a/b", "/a/c", false, false, true},
		{"a directory and what is in it", "/a", "/a/b/c", false, true, false},
		{"what is in it and the directory", "/a/b/c", "/a", true, false, false},
		{"a name that begins alike", "/a", "/ab", false, false, true},
		{"the root", "/", "/a/b", false, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := lock.NewPaths(time.Minute)
				acquire := func(name string, read bool) (func(), error) {
					if read {
						return p.Read(t.Context(), name)
					}
					return p.Write(t.Context(), name)
				}
				release, err := acquire(tt.first, tt.reads)
				if err != nil {
					t.Fatal(err)
				}
				second, err := acquire(tt.second, tt.readsTo)
				if got := err == nil; got != tt.together || err != nil && !errors.Is(err, lock.ErrTimeout) {
					t.Errorf("got together %v, %v, want %v", got, err, tt.together)
				}
				release()
				if err == nil {
					second()
				}
				release, err = p.Write(t.Context(), "/")
				if err != nil {
					t.Fatalf("when all are gone: %v", err)
				}
				release()
			})
		})
	}
}

// Readers that keep coming do not keep a writer waiting.
func TestWriterGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := lock.NewPaths(0)
		first, err := p.Read(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		var mu sync.Mutex
		var all sync.WaitGroup
		note := func(name string) { mu.Lock(); order = append(order, name); mu.Unlock() }
		all.Go(func() {
			release, err := p.Write(t.Context(), "/a")
			if err != nil {
				t.Error(err)
				return
			}
			note("writer")
			release()
		})
		synctest.Wait()
		for range 3 {
			all.Go(func() {
				release, err := p.Read(t.Context(), "/a")
				if err != nil {
					t.Error(err)
					return
				}
				note("reader")
				release()
			})
		}
		synctest.Wait()
		first()
		all.Wait()
		if len(order) != 4 || order[0] != "writer" {
			t.Errorf("got %v, want the writer first", order)
		}
	})
}

// TestNoCircle has many callers who each want several files at once.
func TestNoCircle(t *testing.T) {
	p := lock.NewPaths(10 * time.Second)
	names := []string{"/", "/a", "/a/b", "/a/b/c", "/d", "/d/e"}
	held := map[string]*atomic.Int32{}
	for _, name := range names {
		held[name] = &atomic.Int32{}
	}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 300 {
				one, two := names[rand.IntN(len(names))], names[rand.IntN(len(names))]
				release, err := p.Write(t.Context(), one, two)
				if err != nil {
					t.Error(err)
					return
				}
				if held[one].Add(1) != 1 {
					t.Errorf("%s is held twice", one)
				}
				held[one].Add(-1)
				release()
			}
		})
	}
	all.Wait()
}
