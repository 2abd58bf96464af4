package sandbox

import (
	"context"
	"io"
	"io/fs"
	"time"
)

// FileInfo describes a file in a sandbox, and what an act has made of it.
type FileInfo struct {
	Path     string      `json:"path"` // absolute
	Size     int64       `json:"size"`
	Mode     fs.FileMode `json:"mode"`
	Modified time.Time   `json:"modified"`
	Owner    string      `json:"owner,omitempty"` // name, or number where there is none
	Group    string      `json:"group,omitempty"`
	Target   string      `json:"target,omitempty"`       // of a symbolic link
	SHA256   string      `json:"content_hash,omitempty"` // of a write, in hex
	Previous string      `json:"previous_hash,omitempty"`
	OldSize  int64       `json:"previous_size,omitempty"`
	// Diff is what a write changed, as a unified diff, where both sides are
	// text. DiffTruncated: it is cut, or was too large to be made.
	Diff          string `json:"diff,omitempty"`
	DiffTruncated bool   `json:"diff_truncated,omitempty"`
}

// Described is what Session.Read returns where the session knows the file.
type Described interface {
	Info() *FileInfo
}

// Ranged is what Session.Read returns where the session knows which bytes of
// the file are to come.
type Ranged interface {
	Range() (offset, length int64)
}

// ReadOptions bound a read, by bytes or by lines.
type ReadOptions struct {
	ID     string // of the operation; empty: a new one
	Offset int64  // first byte
	Length int64  // number of bytes; 0: to the end
	// Line is the first line, counted from 1, and Lines how many; 0: from the
	// first, to the last. A line keeps its end (\n, or \r\n).
	Line, Lines int64
}

// Validate refuses bounds that contradict each other.
func (o *ReadOptions) Validate() error {
	switch {
	case o.Offset < 0 || o.Length < 0:
		return Invalid("range", "offset and length must not be negative")
	case o.Line < 0 || o.Lines < 0:
		return Invalid("range", "line and lines must not be negative; lines are counted from 1")
	case (o.Offset != 0 || o.Length != 0) && (o.Line != 0 || o.Lines != 0):
		return Invalid("range", "is given in bytes or in lines, not in both")
	}
	return nil
}

// WriteOptions say how a file is written.
type WriteOptions struct {
	ID string // of the operation; empty: a new one
	// Mode of a new file; 0: 0644. An existing file keeps its mode and owner.
	Mode fs.FileMode
	// IfHash refuses the write with ErrConflict unless the file now has this
	// SHA-256 (hex). "absent" asks that there be no file. Empty: no check.
	IfHash string
}

// Absent as WriteOptions.IfHash asks that the file be new.
const Absent = "absent"

// RemoveOptions say how far a removal goes.
type RemoveOptions struct {
	ID        string // of the operation; empty: a new one
	Recursive bool   // removes a directory with all it holds
}

// Editor is a session that changes a file in place, whole or not at all.
type Editor interface {
	// Append adds to the end of a file, which it makes if it is missing.
	Append(ctx context.Context, path string, content io.Reader, opts *WriteOptions) (*FileInfo, error)
	// Edit replaces text in a file.
	Edit(ctx context.Context, path string, edit *Edit) (*Edited, error)
}

// Edit asks for text to be replaced. Old and New are taken literally. Where
// the file ends its lines with \r\n and Old has only \n, both are read with
// the file's line ends.
type Edit struct {
	ID       string `json:"id,omitempty"` // of the operation; empty: a new one
	Old      string `json:"old"`          // must not be empty
	New      string `json:"new"`
	All      bool   `json:"all,omitempty"`      // every place; else there must be exactly one
	MayMiss  bool   `json:"may_miss,omitempty"` // where old does not stand, the file stays as it is
	IfHash   string `json:"if_hash,omitempty"`
	MaxBytes int64  `json:"-"` // of the file; 0: 64 MiB
}

// Edited is what an edit did.
type Edited struct {
	FileInfo
	Replaced int `json:"replaced"` // places
}

// Tree is a session that arranges files.
type Tree interface {
	// Stat describes a file; a link is described, not followed.
	Stat(ctx context.Context, path string) (*FileInfo, error)
	// MakeDir makes a directory and those above it. One that is there is no error.
	MakeDir(ctx context.Context, path string, opts *MakeDirOptions) (*FileInfo, error)
	// Move renames a file or a directory, across file systems too.
	Move(ctx context.Context, from, to string, opts *MoveOptions) (*FileInfo, error)
	// SetMode changes the mode and the owner of a file; a link is refused.
	SetMode(ctx context.Context, path string, opts *ModeOptions) (*FileInfo, error)
}

// MakeDirOptions say how a directory is made.
type MakeDirOptions struct {
	ID   string      // of the operation; empty: a new one
	Mode fs.FileMode // of new directories; 0: 0755
}

// MoveOptions say how a file is moved.
type MoveOptions struct {
	ID      string // of the operation; empty: a new one
	Replace bool   // takes the place of a file that is there; never of a directory
}

// ModeOptions say what of a file is changed.
type ModeOptions struct {
	ID           string       // of the operation; empty: a new one
	Mode         *fs.FileMode // permission bits with setuid, setgid and sticky; nil: as it is
	Owner, Group string       // name or number; empty: as it is
	Recursive    bool         // all that a directory holds too; links in it stay as they are
}

// Searcher is a session that finds files by name and by content, in one call.
type Searcher interface {
	Glob(ctx context.Context, query *GlobQuery) (*GlobResult, error)
	Grep(ctx context.Context, query *GrepQuery) (*GrepResult, error)
}

// GlobQuery asks for files by name.
type GlobQuery struct {
	ID   string `json:"id,omitempty"` // of the operation; empty: a new one
	Path string `json:"path"`         // where to begin; empty: the working directory
	// Pattern knows *, ?, [a-z], {a,b} and ** for directories of any depth. It
	// is matched against the path below Path. Names that begin with a dot are
	// found only where the pattern has the dot, or with Hidden.
	Pattern string `json:"pattern"`
	Hidden  bool   `json:"hidden,omitempty"`
	Limit   int    `json:"limit,omitempty"` // 0: 10 000, at most 100 000
}

// GlobResult holds what was found, by path. Directory links are not entered.
type GlobResult struct {
	Files     []*FileInfo `json:"files"`
	Truncated bool        `json:"truncated,omitempty"`
	Skipped   int         `json:"skipped,omitempty"` // directories that could not be read
}

// GrepQuery asks for lines by their content.
type GrepQuery struct {
	ID      string `json:"id,omitempty"` // of the operation; empty: a new one
	Path    string `json:"path"`         // file or directory; empty: the working directory
	Pattern string `json:"pattern"`
	Regexp  bool   `json:"regexp,omitempty"` // Pattern is RE2; else it is literal
	// IgnoreCase folds case as Unicode does.
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Glob       string `json:"glob,omitempty"` // only files whose path below Path, or whose name, matches
	Hidden     bool   `json:"hidden,omitempty"`
	Before     int    `json:"before,omitempty"` // lines of context, at most 100
	After      int    `json:"after,omitempty"`
	Limit      int    `json:"limit,omitempty"`      // matches; 0: 1 000, at most 100 000
	FileLimit  int    `json:"file_limit,omitempty"` // matches in one file; 0: no limit
}

// GrepResult holds the matching lines, by path and line.
type GrepResult struct {
	Matches   []*Match `json:"matches"`
	Files     int      `json:"files"`               // looked at
	Binary    int      `json:"binary,omitempty"`    // skipped: they hold a NUL byte
	Skipped   int      `json:"skipped,omitempty"`   // could not be read
	Truncated bool     `json:"truncated,omitempty"` // there are more
}

// Match is a line that matched. Text that is not UTF-8 has its wrong bytes
// replaced; a line of more than 4 KiB is cut around the match.
type Match struct {
	Path   string   `json:"path"`
	Line   int      `json:"line"`   // from 1
	Column int      `json:"column"` // of the match in the line, in bytes, from 1
	Text   string   `json:"text"`   // without its line end
	Cut    bool     `json:"cut,omitempty"`
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

// The records of the global header with which a downloaded tar ends where
// something was left out: how many things, and the names of the first hundred,
// one a line. Sockets, FIFOs and devices are left out, and what may not be read.
const (
	TarSkipped      = "GLASSBOX.skipped"
	TarSkippedNames = "GLASSBOX.skipped_names"
)

// Archiver is a session that takes whole trees in and out, as tar streams.
type Archiver interface {
	// Download streams a file or a tree as a tar. The caller closes it.
	Download(ctx context.Context, path string, opts *DownloadOptions) (io.ReadCloser, error)
	// Upload unpacks a tar below a directory. Each file is replaced whole; no
	// entry can reach out of the directory. What was unpacked before a fault
	// stays, and the result says what.
	Upload(ctx context.Context, path string, tar io.Reader, opts *UploadOptions) (*Uploaded, error)
}

// DownloadOptions say what a tree is taken out with.
type DownloadOptions struct {
	ID string // of the operation; empty: a new one
}

// UploadOptions bound what an upload may bring.
type UploadOptions struct {
	ID       string // of the operation; empty: a new one
	MaxFiles int    // entries; 0: 100 000
	MaxBytes int64  // unpacked; 0: 16 GiB
}

// Uploaded is what an upload left.
type Uploaded struct {
	Files       int   `json:"files"`
	Directories int   `json:"directories"`
	Links       int   `json:"links"`
	Bytes       int64 `json:"bytes"`
}

// Files is all that a session can do with files beyond the port.
type Files interface {
	Editor
	Tree
	Searcher
	Archiver
}
