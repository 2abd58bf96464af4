package sandbox

import (
	"context"
	"io/fs"
	"time"
)

// Scanner is a session that can tell at little cost what stands below a
// directory, so that two looks tell what has changed between them.
type Scanner interface {
	// Scan looks at all that stands below a directory, without following a
	// link and without what the recorder keeps, /proc and /sys. A scan that
	// comes to its limits returns what it has.
	Scan(ctx context.Context, path string, limit ScanLimit) (*Scan, error)
}

// ScanLimit bounds a scan.
type ScanLimit struct {
	Entries int           // 0: 50 000
	Time    time.Duration // 0: 5 s
}

// Scan is what stands below a directory.
type Scan struct {
	Root    string
	Entries []ScanEntry // in the order of ComparePaths
	// Until is where the scan came to its limits: what is at this path and
	// beyond was not looked at. Empty: everything was. Late tells that it was
	// the time that was over.
	Until string
	Late  bool
	// Unread are directories that could not be read, in order.
	Unread []string
}

// ScanEntry is what one scan knows of a file.
type ScanEntry struct {
	Path              string // below the root; bytes as they are, not always UTF-8
	Mode              fs.FileMode
	Size              int64
	Modified, Changed int64 // mtime and ctime, in nanoseconds since 1970
	Inode             uint64
	UID, GID          uint32
}

// TempPrefix begins the name of a file that an act has under way: it becomes
// another, or is removed.
const TempPrefix = ".glassbox-"

// ComparePaths orders paths as a walk meets them: what a directory holds comes
// after it, before whatever follows it.
func ComparePaths(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		switch x, y := a[i], b[i]; {
		case x == y:
		case x == '/':
			return -1
		case y == '/':
			return 1
		case x < y:
			return -1
		default:
			return 1
		}
	}
	return len(a) - len(b)
}
