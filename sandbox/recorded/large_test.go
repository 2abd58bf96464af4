package recorded_test

import (
	"archive/tar"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// However much goes through, both ends together need little memory.
// GLASSBOX_LARGE asks for the whole 10 GiB.
func TestLargeTransfer(t *testing.T) {
	size := int64(256 << 20)
	switch {
	case os.Getenv("GLASSBOX_LARGE") != "":
		size = 10 << 30
	case testing.Short():
		t.Skip("large")
	}
	const flat = 96 << 20
	s := recorded.New(newRecorder(t).URL, &recorded.Options{Token: token})
	t.Cleanup(func() { _ = s.Close(t.Context()) })
	stop, most := make(chan struct{}), make(chan uint64)
	go func() {
		var peak uint64
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			select {
			case <-tick.C:
			case <-stop:
				most <- peak
				return
			}
		}
	}()
	r, w := io.Pipe()
	go func() {
		archive := tar.NewWriter(w)
		err := archive.WriteHeader(&tar.Header{Name: "d/zeros", Mode: 0o644, Size: size})
		if err == nil {
			_, err = io.CopyN(archive, zeros{}, size)
		}
		if err == nil {
			err = archive.Close()
		}
		_ = w.CloseWithError(err)
	}()
	if done, err := s.Upload(t.Context(), "u", r, nil); err != nil || done.Bytes != size {
		t.Errorf("upload: got %+v, %v", done, err)
	}
	back, err := s.Download(t.Context(), "u", nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, back); err != nil || n < size {
		t.Errorf("download: got %d bytes, %v", n, err)
	}
	back.Close()
	if info, err := s.Write(t.Context(), "f", io.LimitReader(zeros{}, size), nil); err != nil || info.Size != size {
		t.Errorf("write: got %+v, %v", info, err)
	}
	if info, err := s.Append(t.Context(), "f", io.LimitReader(zeros{}, size/4), &sandbox.WriteOptions{}); err != nil || info.Size != size+size/4 {
		t.Errorf("append: got %+v, %v", info, err)
	}
	close(stop)
	if peak := <-most; peak > flat {
		t.Errorf("%d MiB in use, want at most %d", peak>>20, flat>>20)
	}
}
