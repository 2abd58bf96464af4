package glassbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/program"
	"github.com/glassboxhq/glassbox/internal/version"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
	"github.com/glassboxhq/glassbox/sandbox/execd"
	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
	"github.com/glassboxhq/glassbox/sandbox/recorded"
)

// installer brings a recorder into a sandbox that has another's execd, and
// finds the one that is there:
//
//	look ──found, answers, as new──> adopted
//	  └─ none, dead, older ─> probe ─> upload ─> install there ─> look
//
// What goes over execd's wire is written into the service's log: no token
// does. The token is made in the sandbox, and read from a file.
type installer struct {
	service *service
	execd   *execd.Session
	at      *opensandbox.Endpoint // execd's
}

const opInstall = "install recorder"

// session returns the session with a recorder.
func (i *installer) session(ctx context.Context) (*recorded.Session, error) {
	var adoptErr error
	if door, err := i.readDoor(ctx, wire.GuestHistory); err == nil {
		session, err := i.adopt(ctx, door)
		if err == nil && !version.Less(door.Version, version.String()) {
			return session, nil
		}
		adoptErr = err
	}
	if errors.Is(adoptErr, errNewer) {
		return nil, adoptErr
	}
	there, err := i.probe(ctx)
	if err != nil {
		return nil, err
	}
	if there.door && there.dir != wire.GuestHistory {
		if door, err := i.readDoor(ctx, there.dir); err == nil {
			if session, err := i.adopt(ctx, door); err == nil && !version.Less(door.Version, version.String()) {
				return session, nil
			}
		}
	}
	if err := i.bring(ctx, there); err != nil {
		return nil, err
	}
	door, err := i.readDoor(ctx, there.dir)
	if err != nil {
		return nil, err
	}
	return i.adopt(ctx, door)
}

// there returns the session with the recorder that is there.
func (i *installer) there(ctx context.Context) (*recorded.Session, error) {
	door, err := i.readDoor(ctx, wire.GuestHistory)
	if errors.Is(err, sandbox.ErrNotFound) || errors.Is(err, sandbox.ErrPermission) {
		door, err = i.readDoor(ctx, i.home(ctx))
	}
	if errors.Is(err, sandbox.ErrNotFound) {
		return nil, &sandbox.Error{
			Op: "open sandbox", Code: sandbox.CodeUnsupported, Sandbox: i.at.Sandbox, Message: "there is no recorder in this sandbox: what is done there is not recorded",
		}
	}
	if err != nil {
		return nil, err
	}
	return i.adopt(ctx, door)
}

// home is the recorder's folder of a user who may not make the usual one. Where
// nothing tells it, there is none but that.
func (i *installer) home(ctx context.Context) string {
	res, err := i.execd.Run(ctx, &sandbox.Command{Line: `printf %s "$HOME"`, Timeout: i.service.opts.RequestTimeout})
	if err != nil {
		return wire.GuestHistory
	}
	home := strings.TrimSuffix(string(res.Stdout), "\n") // which execd may have added
	return path.Join("/", home, path.Base(wire.GuestHistory))
}

// errNewer is a recorder of a later Glassbox.
var errNewer = errors.New("update this program")

// adopt opens the session with a recorder that is there, if it answers.
func (i *installer) adopt(ctx context.Context, door *wire.Door) (*recorded.Session, error) {
	e, err := i.service.provider.Endpoint(ctx, i.at.Sandbox, door.Port)
	if err != nil {
		return nil, err
	}
	header := i.at.Header.Clone() // execd may be on the way
	maps.Copy(header, e.Header)
	session := recorded.New(e.URL, &recorded.Options{
		Tunnel: true,
		Token:  door.Token, Header: header, Client: i.service.provider.Client(), Sandbox: e.Sandbox,
		RequestTimeout: i.service.opts.RequestTimeout, Source: i.service.opts.Source, Use: i.service.use(), Why: i.service.why(e.Sandbox),
	})
	info, err := session.Info(ctx)
	switch {
	case err != nil:
		return nil, err
	case info.Protocol > wire.Protocol:
		return nil, &sandbox.Error{
			Op: "open sandbox", Code: sandbox.CodeUnsupported, Sandbox: e.Sandbox, Err: errNewer,
			Message: fmt.Sprintf("the recorder speaks protocol %d, this program %d", info.Protocol, wire.Protocol),
		}
	case info.Protocol < wire.Protocol-1:
		return nil, &sandbox.Error{
			Op: "open sandbox", Code: sandbox.CodeSandboxState, Sandbox: e.Sandbox,
			Message: fmt.Sprintf("the recorder there is of an old version, %s, and works; try again when its commands have ended", info.Version),
		}
	}
	return session, nil
}

// maxDoor bounds the file that tells of a recorder, which the sandbox may have
// written itself.
const maxDoor = 64 << 10

func (i *installer) readDoor(ctx context.Context, dir string) (*wire.Door, error) {
	f, err := i.execd.Read(ctx, dir+"/"+wire.DoorFile, nil)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDoor))
	if err != nil {
		return nil, err
	}
	door := &wire.Door{}
	if err := json.Unmarshal(text, door); err != nil || door.Port <= 0 || door.Port > 65535 {
		return nil, i.fault(&sandbox.Error{Code: sandbox.CodeProvider, Message: "what the sandbox says of its recorder cannot be read"})
	}
	return door, nil
}

// found is what a probe says of a sandbox.
type found struct {
	dir  string // the recorder's folder
	arch string
	door bool // there is, or was, a recorder
}

// probeScript looks for the first folder that a recorder can work in, with
// what every shell has. A place where nothing may be executed is none.
const probeScript = `umask 077
for d in ` + wire.GuestHistory + ` "${HOME:-/}/.agent-history"; do
  if ! mkdir -p "$d/bin" 2>/dev/null; then echo "no $d cannot be made"; continue; fi
  p=$d/bin/.probe-$$
  if ! (printf '#!/bin/sh\nexit 0\n' >"$p") 2>/dev/null; then echo "no $d cannot be written to"; continue; fi
  chmod 700 "$p"
  if "$p" 2>/dev/null; then why=; else why="may hold no programs (noexec)"; fi
  rm -f "$p"
  if [ -n "$why" ]; then echo "no $d $why"; rmdir "$d/bin" "$d" 2>/dev/null; continue; fi
  if [ -f "$d/` + wire.DoorFile + `" ]; then echo "door"; fi
  echo "dir $d"
  break
done
echo "arch $(uname -m)"
exit 0`

// architectures are those of uname that a recorder is built for.
var architectures = map[string]string{"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}

func (i *installer) probe(ctx context.Context) (*found, error) {
	res, err := i.execd.Run(ctx, &sandbox.Command{Line: probeScript, Timeout: i.service.opts.RequestTimeout})
	if err != nil {
		if sandbox.CodeOf(err) == sandbox.CodeFileNotFound || sandbox.CodeOf(err) == sandbox.CodeCommand {
			err = i.fault(&sandbox.Error{Code: sandbox.CodeUnsupported, Err: err, Message: "the image has no shell by which anything could be started in it"})
		}
		return nil, err
	}
	there := &found{}
	var refused []string
	for line := range strings.Lines(string(res.Stdout)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "dir":
			there.dir = rest
		case "door":
			there.door = true
		case "arch":
			if there.arch = architectures[rest]; there.arch == "" {
				return nil, i.fault(&sandbox.Error{Code: sandbox.CodeUnsupported, Message: "there is no recorder for " + strconv.Quote(rest) + ", only for amd64 and arm64"})
			}
		case "no":
			refused = append(refused, rest)
		}
	}
	switch {
	case there.arch == "":
		return nil, i.fault(&sandbox.Error{
			Code: sandbox.CodeInterrupted, Retryable: true, Message: "the sandbox did not say what it is: " + strings.TrimSpace(string(res.Stderr)),
		})
	case there.dir == "":
		return nil, i.fault(&sandbox.Error{
			Code: sandbox.CodeUnsupported, Message: "there is no place for it: " + strings.Join(refused, ", ") + "; give the image a user who can write to one of them, or mount a volume there",
		})
	}
	return there, nil
}

// bring uploads the recorder, and lets it install itself.
func (i *installer) bring(ctx context.Context, there *found) error {
	text, hash, err := recorderFor(ctx, there.arch, i.service.opts.Logger.Info)
	if err != nil {
		return err
	}
	boot, err := i.boot(ctx, there.dir)
	if err != nil {
		return err
	}
	name := there.dir + "/bin/." + id.New() // two who come at once write over nothing
	bootName := name + ".json"
	err = i.execd.Upload(ctx,
		execd.File{Path: name, Mode: 0o700, Content: bytes.NewReader(text)},
		execd.File{Path: bootName, Mode: 0o600, Content: bytes.NewReader(boot)},
	)
	if err != nil {
		return err
	}
	res, err := i.execd.Run(ctx, &sandbox.Command{Args: []string{name, "install", "--boot", bootName, "--sha256", hash}})
	if err != nil {
		return err
	}
	if res.ExitCode != 0 {
		return i.fault(&sandbox.Error{
			Code: sandbox.CodeUnavailable, Message: "it could not be put into the sandbox: " + strings.TrimSpace(string(res.Stderr)),
		})
	}
	return nil
}

// boot is what the recorder is to know.
func (i *installer) boot(ctx context.Context, dir string) ([]byte, error) {
	info, err := i.service.provider.Get(ctx, i.at.Sandbox)
	if err != nil {
		return nil, err
	}
	o := i.service.opts
	boot := &wire.Boot{
		SandboxID: info.ID, InstanceID: info.InstanceID, Name: o.Name, Metadata: info.Metadata,
		Workdir: o.Workdir, AnyWorkdir: o.Workdir == "", InheritEnv: true, HistoryDir: dir,
		HistoryOff: o.HistoryMode == NoHistory, BestEffort: o.HistoryMode == BestEffort, NoFileChanges: o.NoFileChanges,
		History: o.History, Concurrency: o.Concurrency, Listen: "0.0.0.0:" + strconv.Itoa(wire.DefaultPort),
	}
	if boot.Name == "" {
		boot.Name = info.Name
	}
	return json.Marshal(boot)
}

func (i *installer) fault(e *sandbox.Error) error {
	e.Op, e.Sandbox = opInstall, i.at.Sandbox
	return e
}

// recorderFor returns the recorder for an architecture, and its SHA-256.
func recorderFor(ctx context.Context, arch string, say func(string, ...any)) (text []byte, hash string, err error) {
	name, err := program.RecorderFor(arch).Find(ctx, func(text string) { say(text) })
	if err != nil {
		return nil, "", err
	}
	if text, err = os.ReadFile(name); err != nil {
		return nil, "", &sandbox.Error{Op: opInstall, Code: sandbox.CodeInternal, Err: err}
	}
	f, err := elf.NewFile(bytes.NewReader(text))
	if machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]; err != nil || f.Machine != machine {
		return nil, "", &sandbox.Error{Op: opInstall, Code: sandbox.CodeUnsupported, Message: name + " is no program for Linux on " + arch}
	}
	sum := sha256.Sum256(text)
	return text, hex.EncodeToString(sum[:]), nil
}
