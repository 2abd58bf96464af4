package execd

import (
	"io"
	"os"
	"sync"
)

// spool keeps the last bytes of a log in two files without names, a newer and
// an older one. When the newer is full the older one goes.
type spool struct {
	mu           sync.Mutex
	dir          string
	older, newer *os.File // older may be nil
	start        int64    // of what is kept
	turn         int64    // where newer begins
	end          int64
	moved        chan struct{} // closed and replaced whenever end moves
}

// spoolHalf is what each of the two files takes.
const spoolHalf = 32 << 20

func newSpool(dir string) (*spool, error) {
	f, err := nameless(dir)
	return &spool{dir: dir, newer: f, moved: make(chan struct{})}, err
}

// nameless makes a file that is gone when nobody has it open. Who reads it may
// still do so after the spool has let go of it, so it is closed with its last
// reader, by the garbage collector.
func nameless(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "log-*")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

func (s *spool) write(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end-s.turn >= spoolHalf {
		f, err := nameless(s.dir)
		if err != nil {
			return err
		}
		s.older, s.newer = s.newer, f
		s.start, s.turn = s.turn, s.end
	}
	n, err := s.newer.WriteAt(p, s.end-s.turn)
	s.end += int64(n)
	close(s.moved)
	s.moved = make(chan struct{})
	return err
}

// span tells where what is kept begins and ends; moved is closed when the end
// moves.
func (s *spool) span() (start, end int64, moved <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start, s.end, s.moved
}

// from returns what is kept from a byte on, where that really begins, and where
// it ends. Bytes that are gone are passed over.
func (s *spool) from(at int64) (body io.Reader, start, end int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at = min(max(at, s.start), s.end)
	newer := func(at int64) io.Reader { return io.NewSectionReader(s.newer, at-s.turn, s.end-at) }
	if at >= s.turn {
		return newer(at), at, s.end
	}
	return io.MultiReader(io.NewSectionReader(s.older, at-s.start, s.turn-at), newer(s.turn)), at, s.end
}
