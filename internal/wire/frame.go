package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/glassboxhq/glassbox/sandbox"
)

// FrameType tells what a frame carries.
type FrameType byte

// The types of frames.
const (
	FrameStart  FrameType = 'S' // Start in JSON: the command runs
	FrameStdout FrameType = 'o' // offset and time, 8 bytes each, then the bytes
	FrameStderr FrameType = 'e'
	FramePing   FrameType = 'p' // nothing; says that the connection lives
	FrameExit   FrameType = 'X' // Result in JSON: the end
	FrameError  FrameType = 'E' // error in JSON: the end
)

// MaxFrame bounds the payload of a frame.
const MaxFrame = 1 << 20

// PingEvery is how often a silent stream carries a FramePing.
const PingEvery = 10 * time.Second

const (
	headerBytes = 5     // type, length
	stampBytes  = 8 + 8 // offset, time in µs since 1970
)

// Frame is one message of a command's stream: a type byte, the length of the
// payload as a 32-bit big-endian number, the payload.
type Frame struct {
	Type    FrameType
	Payload []byte
}

// AppendFrame adds a frame to b.
func AppendFrame(b []byte, t FrameType, payload []byte) []byte {
	b = append(b, byte(t))
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// AppendChunk adds a piece of output to b as a frame. It is at most MaxFrame
// less 16 bytes long.
func AppendChunk(b []byte, c sandbox.Chunk) []byte {
	t := FrameStdout
	if c.Stream == sandbox.Stderr {
		t = FrameStderr
	}
	b = append(b, byte(t))
	b = binary.BigEndian.AppendUint32(b, uint32(stampBytes+len(c.Data)))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Offset))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Time.UnixMicro()))
	return append(b, c.Data...)
}

// Chunk reads an output frame. Its data is the frame's.
func (f Frame) Chunk() (sandbox.Chunk, error) {
	if len(f.Payload) < stampBytes {
		return sandbox.Chunk{}, malformed("output frame", errors.New("too short"))
	}
	c := sandbox.Chunk{
		Stream: sandbox.Stdout,
		Offset: int64(binary.BigEndian.Uint64(f.Payload)),
		Time:   time.UnixMicro(int64(binary.BigEndian.Uint64(f.Payload[8:]))).UTC(),
		Data:   f.Payload[stampBytes:],
	}
	if f.Type == FrameStderr {
		c.Stream = sandbox.Stderr
	}
	if c.Offset < 0 {
		return sandbox.Chunk{}, malformed("output frame", errors.New("negative offset"))
	}
	return c, nil
}

// Reader reads frames.
type Reader struct {
	r   io.Reader
	buf []byte
}

// NewReader returns a Reader of r, which should be buffered.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// Next returns the next frame; its payload may be used until the next call.
// The end of the stream between frames is io.EOF, within one
// io.ErrUnexpectedEOF.
func (r *Reader) Next() (Frame, error) {
	var head [headerBytes]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return Frame{}, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > MaxFrame {
		return Frame{}, malformed("frame", fmt.Errorf("length %d is over the limit of %d", n, MaxFrame))
	}
	if cap(r.buf) < int(n) {
		r.buf = make([]byte, n)
	}
	payload := r.buf[:n]
	if _, err := io.ReadFull(r.r, payload); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	return Frame{Type: FrameType(head[0]), Payload: payload}, nil
}

func malformed(what string, err error) *sandbox.Error {
	return &sandbox.Error{Op: "read " + what, Code: sandbox.CodeInterrupted, Err: err}
}
