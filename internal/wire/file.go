package wire

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/glassboxhq/glassbox/sandbox"
)

// File is a sandbox.FileInfo on the wire. JSON holds text: a name that is not
// UTF-8 comes a second time, in base64.
type File struct {
	sandbox.FileInfo
	PathBytes   []byte `json:"path_base64,omitempty"`
	TargetBytes []byte `json:"target_base64,omitempty"`
}

// NewFile writes info for the wire.
func NewFile(info *sandbox.FileInfo) *File {
	return &File{FileInfo: *info, PathBytes: notText(info.Path), TargetBytes: notText(info.Target)}
}

// NewFiles is NewFile for a list.
func NewFiles(list []*sandbox.FileInfo) []*File {
	files := make([]*File, len(list))
	for i, info := range list {
		files[i] = NewFile(info)
	}
	return files
}

// Info reads the description back.
func (f *File) Info() *sandbox.FileInfo {
	info := f.FileInfo
	info.Path, info.Target = either(f.PathBytes, info.Path), either(f.TargetBytes, info.Target)
	return &info
}

// Infos is Info for a list.
func Infos(files []*File) []*sandbox.FileInfo {
	list := make([]*sandbox.FileInfo, 0, len(files))
	for _, f := range files {
		if f != nil {
			list = append(list, f.Info())
		}
	}
	return list
}

func notText(s string) []byte {
	if utf8.ValidString(s) {
		return nil
	}
	return []byte(s)
}

func either(raw []byte, text string) string {
	if len(raw) > 0 {
		return string(raw)
	}
	return text
}

// Edited is a sandbox.Edited on the wire.
type Edited struct {
	File
	Replaced int `json:"replaced"`
}

// GlobResult is a sandbox.GlobResult on the wire.
type GlobResult struct {
	Files     []*File `json:"files"`
	Truncated bool    `json:"truncated,omitempty"`
	Skipped   int     `json:"skipped,omitempty"`
}

// GrepResult is a sandbox.GrepResult on the wire.
type GrepResult struct {
	sandbox.GrepResult
	Matches []*Match `json:"matches"`
}

// Match is a sandbox.Match on the wire.
type Match struct {
	sandbox.Match
	PathBytes []byte `json:"path_base64,omitempty"`
}

// NewGrepResult writes a result for the wire.
func NewGrepResult(res *sandbox.GrepResult) *GrepResult {
	out := &GrepResult{GrepResult: *res, Matches: make([]*Match, len(res.Matches))}
	out.GrepResult.Matches = nil
	for i, m := range res.Matches {
		out.Matches[i] = &Match{Match: *m, PathBytes: notText(m.Path)}
	}
	return out
}

// Result reads the result back.
func (r *GrepResult) Result() *sandbox.GrepResult {
	res := r.GrepResult
	res.Matches = make([]*sandbox.Match, 0, len(r.Matches))
	for _, m := range r.Matches {
		if m != nil {
			found := m.Match
			found.Path = either(m.PathBytes, m.Path)
			res.Matches = append(res.Matches, &found)
		}
	}
	return &res
}

// SetFile puts a description into the header of an answer.
func SetFile(h http.Header, info *sandbox.FileInfo) {
	b, err := json.Marshal(NewFile(info))
	if err != nil {
		panic(err) // plain values only
	}
	h.Set(HeaderFile, url.PathEscape(string(b)))
}

// ReadFile reads the description from the header of an answer; nil: there is
// none.
func ReadFile(h http.Header) *sandbox.FileInfo {
	text, err := url.PathUnescape(h.Get(HeaderFile))
	var f File
	if err != nil || text == "" || json.Unmarshal([]byte(text), &f) != nil {
		return nil
	}
	return f.Info()
}

// TreeEndBytes is how long the end of a tree is.
const TreeEndBytes = 512

// TreeEnd is what follows a tar of so many bytes, so that who reads it knows
// that it is whole. A program that unpacks the tar does not look beyond its
// end, so it needs not know of this.
func TreeEnd(n int64) []byte {
	end := make([]byte, TreeEndBytes)
	copy(end, "glassbox: end of a tree of "+strconv.FormatInt(n, 10)+" bytes\n")
	return end
}

// UploadFault is what an upload that failed answers beside the error.
type UploadFault struct {
	Uploaded *sandbox.Uploaded `json:"uploaded,omitempty"`
}

// modeBits are the bits above the permissions, as Unix numbers them.
var modeBits = []struct {
	bit  uint64
	mode fs.FileMode
}{{0o4000, fs.ModeSetuid}, {0o2000, fs.ModeSetgid}, {0o1000, fs.ModeSticky}}

// CheckMode refuses bits that no octal number tells.
func CheckMode(mode fs.FileMode) error {
	if mode&^(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
		return sandbox.Invalid("mode", "must be permission bits with setuid, setgid and sticky, as in 0755")
	}
	return nil
}

// FormatMode writes a mode in octal, as chmod takes it.
func FormatMode(mode fs.FileMode) string {
	n := uint64(mode.Perm())
	for _, b := range modeBits {
		if mode&b.mode != 0 {
			n |= b.bit
		}
	}
	return strconv.FormatUint(n, 8)
}

// ParseMode reads a mode in octal.
func ParseMode(text string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o7777 {
		return 0, sandbox.Invalid("mode", "must be permission bits in octal, as in 644")
	}
	mode := fs.FileMode(n & 0o777)
	for _, b := range modeBits {
		if n&b.bit != 0 {
			mode |= b.mode
		}
	}
	return mode, nil
}
