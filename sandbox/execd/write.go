package execd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Write implements sandbox.Session: what is sent lies beside the file until
// all of it has come.
func (s *Session) Write(ctx context.Context, name string, from io.Reader, opts *sandbox.WriteOptions) (*sandbox.FileInfo, error) {
	const op = "write file"
	if opts == nil {
		opts = &sandbox.WriteOptions{}
	}
	full, err := s.checkPath(op, name)
	if err != nil {
		return nil, err
	}
	mode := opts.Mode
	if mode == 0 {
		mode = 0o644
	}
	part := path.Join(path.Dir(full), ".glassbox-"+id.New())
	sum := sha256.New()
	size, err := s.upload(ctx, op, part, io.TeeReader(from, sum), mode)
	if err != nil {
		return nil, errors.Join(err, s.discard(ctx, part))
	}
	res, err := s.Run(ctx, &sandbox.Command{Args: []string{"sh", "-c", placeScript, "sh", part, full, opts.IfHash}})
	if err == nil && res.ExitCode != 0 {
		err = s.fault(op, placeFault(res))
	}
	if err != nil {
		return nil, errors.Join(err, s.discard(ctx, part))
	}
	return &sandbox.FileInfo{Path: full, Mode: mode, Size: size, Modified: time.Now(), SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// placeScript puts a file in the place of another, which may be asked to have
// a hash.
const placeScript = `part=$1 to=$2 hash=$3
[ -L "$to" ] && exit 100
[ -d "$to" ] && exit 101
[ -e "$to" ] && ! [ -f "$to" ] && exit 100
if [ "$hash" = absent ]; then
  [ -e "$to" ] && exit 102
elif [ -n "$hash" ]; then
  sum=$(sha256sum <"$to") || exit 103
  [ "${sum%% *}" = "$hash" ] || exit 103
fi
if [ -f "$to" ]; then
  chmod "$(stat -c %a "$to")" "$part" && chown "$(stat -c %u:%g "$to")" "$part" || exit 104
fi
mv -f -- "$part" "$to"`

func placeFault(res *sandbox.Result) *sandbox.Error {
	switch res.ExitCode {
	case 100:
		return &sandbox.Error{Code: sandbox.CodePermission, Message: "it is no regular file"}
	case 101:
		return &sandbox.Error{Code: sandbox.CodeIsDirectory}
	case 102:
		return &sandbox.Error{Code: sandbox.CodeFileExists}
	case 103:
		return &sandbox.Error{Code: sandbox.CodeModified, Message: "it is not the file that was expected"}
	}
	return newFault(0, &answerFault{Message: strings.TrimSpace(string(res.Stderr))})
}

// discard removes what was not put into its place.
func (s *Session) discard(ctx context.Context, full string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return s.ask(ctx, &request{op: "write file", method: http.MethodDelete, path: "/files", query: url.Values{"path": {full}}}, nil)
}
