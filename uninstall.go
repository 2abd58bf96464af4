package glassbox

import (
	"context"
	"errors"
	"strings"

	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Uninstall takes the recorder out of a sandbox again, with all that was put
// in beside it: commands that run are stopped. The history goes too, unless it
// is to be kept where it is.
func Uninstall(ctx context.Context, url, id string, keepHistory bool, o *Options) error {
	s, err := dial(ctx, url, o)
	if err != nil {
		return err
	}
	return errors.Join(s.uninstall(ctx, id, keepHistory), s.close())
}

// uninstallScript lets the recorder that is there take itself out.
const uninstallScript = `for d in ` + wire.GuestHistory + ` "${HOME:-/}/.agent-history"; do
  if [ -x "$d/bin/glassbox-recorder" ]; then exec "$d/bin/glassbox-recorder" uninstall --dir "$d" "$@"; fi
done
exit 100`

func (s *service) uninstall(ctx context.Context, id string, keepHistory bool) error {
	const op = "uninstall recorder"
	e, err := s.provider.Endpoint(ctx, id, wire.ExecdPort)
	if err != nil {
		return err
	}
	if e.Header.Get(wire.HeaderToken) != "" {
		return &sandbox.Error{Op: op, Code: sandbox.CodeUnsupported, Sandbox: id, Message: "the service itself runs it, and every sandbox of it has one"}
	}
	args := []string{"sh", "-c", uninstallScript, "sh"}
	if keepHistory {
		args = append(args, "--keep-history")
	}
	res, err := s.stranger(e).Run(ctx, &sandbox.Command{Args: args})
	switch {
	case err != nil:
		return err
	case res.ExitCode == 100:
		return &sandbox.Error{Op: op, Code: sandbox.CodeFileNotFound, Sandbox: id, Message: "there is none in the sandbox"}
	case res.ExitCode != 0:
		return &sandbox.Error{Op: op, Code: sandbox.CodeInternal, Sandbox: id, Message: strings.TrimSpace(string(res.Stderr))}
	}
	return nil
}
