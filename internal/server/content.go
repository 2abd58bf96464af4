package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

const octets = "application/octet-stream"

func (s *Server) routeContent() {
	tag := []string{"files"}
	route(s, huma.Operation{
		OperationID: "read-file", Method: http.MethodGet, Path: boxPath + "/files/content", Summary: "Read a file", Tags: tag,
		Description: "Range asks for one part. The ETag tells the size and the time of the last change; with etag=sha256 it is the hash of the content, which a later write can ask for.",
		Responses: bytesOf(octets, map[string]string{
			"200": "the content", "206": "a part of it", "304": "it is as If-None-Match says", "416": "there is no such part",
		}),
	}, s.readFile)
	work(s, huma.Operation{
		OperationID: "write-file", Method: http.MethodPut, Path: boxPath + "/files/content", Summary: "Write a file, whole or not at all", Tags: tag,
		Description: "The body is the content. If-Match with the hash that was read, or If-None-Match: *, refuse the write with 412 when another has written meanwhile.",
		RequestBody: raw("the content", octets),
	}, writeFile)
}

// tagOf is the weak ETag of a file: two contents in one moment may share it.
func tagOf(f *sandbox.FileInfo) string {
	if f.SHA256 != "" {
		return strconv.Quote(f.SHA256)
	}
	return fmt.Sprintf(`W/"%x-%x"`, f.Size, f.Modified.UnixNano())
}

type contentQuery struct {
	FileQuery
	Hash        string `query:"etag" enum:"sha256" doc:"reads the file first, which may have up to 8 MiB"`
	Range       string `header:"Range" maxLength:"256"`
	IfRange     string `header:"If-Range" maxLength:"256"`
	IfNoneMatch string `header:"If-None-Match" maxLength:"1024"`
}

func (s *Server) readFile(ctx context.Context, v *visit, in *contentQuery) (*huma.StreamResponse, error) {
	name, err := in.name()
	if err != nil {
		return nil, err
	}
	ctx, box, err := s.open(ctx, v, &in.SandboxPath)
	if err != nil {
		return nil, err
	}
	box.about(name)
	answer, f, err := s.readPart(ctx, box, in, name)
	if err != nil {
		box.leave()
		return nil, err
	}
	return s.stream(box, f, func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Type", octets) // whatever an agent has written, it is no page
		w.Header().Set("Content-Disposition", attachment(name))
		return answer(w, r)
	}), nil
}

// readPart opens what is asked for of a file, and returns what answers with it.
func (s *Server) readPart(ctx context.Context, box *inside, in *contentQuery, name string) (func(http.ResponseWriter, *http.Request) error, io.ReadCloser, error) {
	part, err := in.part(ctx, box, name)
	if err != nil {
		return nil, nil, err
	}
	f, err := box.Read(ctx, name, &sandbox.ReadOptions{Offset: part.from, Length: part.length})
	if err != nil {
		return nil, nil, err
	}
	answer, err := s.answerPart(in, part, f)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return answer, f, nil
}

func (s *Server) answerPart(in *contentQuery, part part, f io.Reader) (func(http.ResponseWriter, *http.Request) error, error) {
	described, ok := f.(sandbox.Described)
	if !ok || described.Info() == nil {
		return nil, &sandbox.Error{Op: "read file", Code: sandbox.CodeProvider, Message: "the recorder tells nothing of the file"}
	}
	info := *described.Info()
	if in.Hash != "" {
		return hashed(&info, f)
	}
	content := bufio.NewReaderSize(f, sendBytes)
	_, end := content.Peek(1)
	if end != nil && !errors.Is(end, io.EOF) {
		return nil, end
	}
	switch tag := tagOf(&info); {
	case matches(in.IfNoneMatch, tag):
		return func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("ETag", tag)
			w.WriteHeader(http.StatusNotModified)
			return nil
		}, nil
	case part.from > 0 && part.from >= info.Size:
		return func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", info.Size))
			w.Header().Del("Content-Disposition")
			s.refuse(w, r, &sandbox.Error{Op: "read file", Code: codeRange, Message: fmt.Sprintf("the file has %d bytes", info.Size)})
			return nil
		}, nil
	}
	return func(w http.ResponseWriter, _ *http.Request) error {
		return sendPart(w, part, &info, content, end != nil)
	}, nil
}

// sendPart sends a file, or a part of one. A file of the kernel may have more
// than it says: that comes without a length.
func sendPart(w http.ResponseWriter, part part, info *sandbox.FileInfo, content io.Reader, empty bool) error {
	h, status := w.Header(), http.StatusOK
	h.Set("ETag", tagOf(info))
	h.Set("Accept-Ranges", "bytes")
	length := info.Size - part.from
	if part.length > 0 {
		length = min(length, part.length)
	}
	if part.asked && info.Size > 0 {
		status = http.StatusPartialContent
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", part.from, part.from+length-1, info.Size))
	}
	if info.Size > 0 || empty {
		h.Set("Content-Length", strconv.FormatInt(length, 10))
		content = io.LimitReader(content, length) // it may have grown
	}
	w.WriteHeader(status)
	return send(w, content)
}

// maxHashed bounds what is read into memory for its hash.
const maxHashed = 8 << 20

// hashed answers with a file that was read before, so that its hash is known.
func hashed(info *sandbox.FileInfo, f io.Reader) (func(http.ResponseWriter, *http.Request) error, error) {
	content, err := io.ReadAll(io.LimitReader(f, maxHashed+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxHashed {
		return nil, &sandbox.Error{Op: "read file", Code: sandbox.CodeTooLarge, Message: "only files of up to 8 MiB are hashed; read it without etag=sha256"}
	}
	sum := sha256.Sum256(content)
	info.SHA256 = hex.EncodeToString(sum[:])
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("ETag", tagOf(info))
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		return nil
	}, nil
}

// matches reports whether a header names an ETag, weak or not.
func matches(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// part is what is asked for of a file.
type part struct {
	from, length int64 // length 0: to the end
	asked        bool  // for less than the whole
}

// part reads the header Range. More than one part, or what is none, is no
// reason to fail: the whole file comes then. The end of a file is found by
// asking for its size.
func (q *contentQuery) part(ctx context.Context, box *inside, name string) (part, error) {
	first, last, ok := strings.Cut(strings.TrimPrefix(q.Range, "bytes="), "-")
	if !ok || !strings.HasPrefix(q.Range, "bytes=") || q.Hash != "" || q.IfRange != "" {
		return part{}, nil
	}
	from, err := strconv.ParseInt(first, 10, 64)
	to, lastErr := strconv.ParseInt(last, 10, 64)
	switch {
	case first == "" && lastErr == nil && to > 0:
		f, err := box.Stat(ctx, name)
		if err != nil {
			return part{}, err
		}
		return part{max(f.Size-to, 0), min(to, f.Size), true}, nil
	case err != nil || from < 0:
	case last == "":
		return part{from: from, asked: true}, nil
	case lastErr == nil && to >= from && to-from < 1<<62:
		return part{from, to - from + 1, true}, nil
	}
	return part{}, nil
}

// Written is a file as it was written.
type Written struct {
	FileEntry
	SHA256   string `json:"sha256"`
	Previous string `json:"previous_sha256,omitempty" doc:"of what was there before; absent: nothing"`
	// Operation names the act in the history of the sandbox.
	Operation string `json:"operation_id"`
}

type oneWritten struct {
	ETag string `header:"ETag"`
	Body Written
}

type writeQuery struct {
	FileQuery
	Content
	Mode        string `query:"mode" pattern:"^[0-7]{3,4}$" doc:"of a new file, in octal; 644 if it is absent"`
	IfMatch     string `header:"If-Match" maxLength:"128" doc:"an ETag that is a hash"`
	IfNoneMatch string `header:"If-None-Match" maxLength:"128" doc:"only *: there is to be no such file"`
}

func writeFile(ctx context.Context, box *inside, in *writeQuery) (*oneWritten, error) {
	name, err := in.name()
	if err != nil {
		return nil, err
	}
	box.about(name)
	opts := &sandbox.WriteOptions{ID: id.New()}
	if opts.IfHash, err = in.condition(); err != nil {
		return nil, err
	}
	if in.Mode != "" {
		if opts.Mode, err = wire.ParseMode(in.Mode); err != nil {
			return nil, err
		}
	}
	f, err := box.Write(ctx, name, in.body, opts)
	in.done(err)
	if opts.IfHash == sandbox.Absent && errors.Is(err, sandbox.ErrExists) {
		err = &sandbox.Error{Op: "write file", Code: sandbox.CodeModified, Message: "there is such a file", Err: err}
	}
	if err != nil {
		return nil, err
	}
	return &oneWritten{tagOf(f), Written{entryOf(f), f.SHA256, f.Previous, opts.ID}}, nil
}

// condition is what the file has to be now.
func (q *writeQuery) condition() (string, error) {
	if q.IfNoneMatch != "" {
		if q.IfNoneMatch != "*" || q.IfMatch != "" {
			return "", sandbox.Invalid("If-None-Match", "must be *, and without If-Match")
		}
		return sandbox.Absent, nil
	}
	hash := strings.Trim(q.IfMatch, `"`)
	if raw, err := hex.DecodeString(hash); q.IfMatch != "" && (err != nil || len(raw) != sha256.Size) {
		return "", &sandbox.Error{
			Op: "write file", Code: sandbox.CodeModified, Field: "If-Match",
			Message: "is no hash of a file: only the ETag of a write, or of a read with etag=sha256, tells whether another has written",
		}
	}
	return hash, nil
}
