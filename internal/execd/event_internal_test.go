package execd

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// However the bytes are cut into pieces, the lines are the same, and nothing
// of them is lost.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\n\nb\r\nc\rd"), 1)
	f.Add([]byte("\r\r\n\n\xff\xe4\xb8"), 2)
	f.Add([]byte("no end"), 3)
	ends := regexp.MustCompile("\r\n|\r|\n")
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		if size < 1 {
			return
		}
		l := &lines{kind: "stdout"}
		var got []string
		for piece := range pieces(data, size) {
			for _, e := range l.add(piece) {
				got = append(got, e.Text)
			}
		}
		for _, e := range l.end() {
			got = append(got, e.Text)
		}
		want := ends.Split(string(data), -1)
		if want[len(want)-1] == "" {
			want = want[:len(want)-1] // the end of the last line
		}
		for i := range want {
			if want[i] == "" {
				want[i] = "\n"
			}
		}
		if len(got)+len(want) > 0 && !cmp.Equal(got, want) {
			t.Errorf("%q in pieces of %d (-want +got):\n%s", data, size, cmp.Diff(want, got))
		}
	})
}

func pieces(data []byte, size int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			n := min(size, len(data))
			if !yield(data[:n]) {
				return
			}
			data = data[n:]
		}
	}
}

// A line without an end is cut between two characters.
func TestLongLine(t *testing.T) {
	l := &lines{kind: "stdout"}
	text := strings.Repeat("x", maxLine-1) + "界" + "y"
	var got bytes.Buffer
	for piece := range pieces([]byte(text), 1<<20) {
		for _, e := range l.add(piece) {
			if len(e.Text) > maxLine || strings.ToValidUTF8(e.Text, "") != e.Text {
				t.Errorf("an event of %d bytes is too long, or no text", len(e.Text))
			}
			got.WriteString(e.Text)
		}
	}
	for _, e := range l.end() {
		got.WriteString(e.Text)
	}
	if got.String() != text {
		t.Errorf("got %d bytes of %d", got.Len(), len(text))
	}
}

// What a spool has thrown away is passed over; the rest is exact.
func TestSpool(t *testing.T) {
	s, err := newSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	block := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	total := int64(0)
	for range 2*spoolHalf/len(block) + 3 {
		if err := s.write(block); err != nil {
			t.Fatal(err)
		}
		total += int64(len(block))
	}
	r, _, end := s.from(0)
	var kept bytes.Buffer
	if _, err := kept.ReadFrom(r); err != nil || end != total {
		t.Fatalf("got the end %d, %v, want %d", end, err, total)
	}
	if kept.Len() < spoolHalf || kept.Len() > 2*spoolHalf || !bytes.Equal(kept.Bytes()[:len(block)], block) {
		t.Errorf("%d bytes are kept", kept.Len())
	}
	across := s.turn - 8
	r, _, _ = s.from(across)
	kept.Reset()
	if _, err := kept.ReadFrom(r); err != nil || int64(kept.Len()) != total-across || !strings.HasPrefix(kept.String(), "89abcdef0123") {
		t.Errorf("from %d: got %d bytes, %v", across, kept.Len(), err)
	}
}
