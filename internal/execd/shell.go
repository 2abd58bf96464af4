package execd

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/wire"
	"github.com/glassboxhq/glassbox/sandbox"
)

// shells are what execd calls sessions: each run is a bash of its own, which
// begins where the run before it ended.
type shells struct {
	mu   sync.Mutex
	byID map[string]*keptShell
}

// keptShell is the state of a shell between its runs: exported variables,
// functions and the working directory, in files that bash reads and writes.
type keptShell struct {
	turn chan struct{} // held by the run under way
	dir  string        // private
	cwd  string        // where the first run begins
}

func newShells() *shells { return &shells{byID: map[string]*keptShell{}} }

func (s *shells) find(name string) *keptShell {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[name]
}

// close forgets a shell. A run under way goes on to its end.
func (s *shells) close(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh, ok := s.byID[name]
	delete(s.byID, name)
	if !ok {
		return errNoShell(name)
	}
	return os.RemoveAll(sh.dir)
}

func errNoShell(name string) error {
	return &sandbox.Error{Op: "find session", Code: sandbox.CodeOperationNotFound, Message: "session not found: " + name}
}

// startup is what bash reads before a run, by BASH_ENV, which programs that
// the run starts do not see. It restores what the last run left and keeps what
// this one leaves, whatever way it ends.
const startup = `unset BASH_ENV
__glassbox_operation=$GLASSBOX_OPERATION __glassbox_dir=$PWD
if [ -r "$GLASSBOX_SHELL/state" ]; then . "$GLASSBOX_SHELL/state" 2>/dev/null; fi
export GLASSBOX_OPERATION=$__glassbox_operation
PWD=$__glassbox_dir
eval "__glassbox_keep() { { { export -p; declare -f; } >|'$GLASSBOX_SHELL/new' && command mv -f -- '$GLASSBOX_SHELL/new' '$GLASSBOX_SHELL/state' && printf %s \"\$PWD\" >|'$GLASSBOX_SHELL/cwd'; } 2>/dev/null; }"
unset GLASSBOX_SHELL __glassbox_operation __glassbox_dir
trap __glassbox_keep EXIT
`

func (h *Handler) openShell(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Dir string `json:"cwd"`
	}
	if err := h.decode(w, r, &req); err != nil && !errors.Is(err, io.EOF) { // no body is no wish
		return err
	}
	if _, err := exec.LookPath("bash"); err != nil {
		return &sandbox.Error{Op: "open session", Code: sandbox.CodeUnsupported, Message: "needs the program bash in the sandbox"}
	}
	sh := &keptShell{turn: make(chan struct{}, 1)}
	if req.Dir != "" {
		sh.cwd = h.path(req.Dir)
		if err := h.needDir(r.Context(), sh.cwd); err != nil {
			return err
		}
	}
	if err := h.ready(sh); err != nil {
		return err
	}
	name := id.New()
	h.shells.mu.Lock()
	h.shells.byID[name] = sh
	h.shells.mu.Unlock()
	return answer(w, map[string]string{"session_id": name})
}

// ready makes the files of a shell, also when somebody emptied the temporary
// directory: under a new name, as the old one may be another's by now.
func (h *Handler) ready(sh *keptShell) error {
	h.shells.mu.Lock()
	defer h.shells.mu.Unlock()
	if sh.dir != "" {
		if _, err := os.Stat(filepath.Join(sh.dir, "startup")); err == nil {
			return nil
		}
	}
	var err error
	if h.opts.Dir != "" { // which may have been emptied, too
		err = os.MkdirAll(h.opts.Dir, 0o700)
	}
	var dir string
	if err == nil {
		dir, err = os.MkdirTemp(h.opts.Dir, "glassbox-shell-*")
	}
	if err == nil {
		sh.dir = dir
		err = os.WriteFile(filepath.Join(dir, "startup"), []byte(startup), 0o600)
	}
	if err != nil {
		return &sandbox.Error{Op: "open session", Code: sandbox.CodeInternal, Err: err}
	}
	return nil
}

func (h *Handler) closeShell(_ http.ResponseWriter, r *http.Request) error {
	return h.shells.close(r.PathValue("id"))
}

func (h *Handler) runInShell(w http.ResponseWriter, r *http.Request) error {
	var req commandRequest
	if err := h.decode(w, r, &req); err != nil {
		return err
	}
	name := r.PathValue("id")
	sh := h.shells.find(name)
	if sh == nil {
		return errNoShell(name)
	}
	cmd, err := h.newCommand(&commandRequest{Command: req.Command, TimeoutMS: req.TimeoutMS})
	if err != nil {
		return err
	}
	w.Header().Set(wire.HeaderID, cmd.ID)
	out := newEvents(w, h.opts.Idle)
	defer out.stop()
	select { // one run after the other
	case sh.turn <- struct{}{}:
		defer func() { <-sh.turn }()
	case <-r.Context().Done():
		return nil
	}
	if err := h.ready(sh); err != nil {
		return err
	}
	cmd.Env["BASH_ENV"] = filepath.Join(sh.dir, "startup")
	cmd.Env["GLASSBOX_SHELL"] = sh.dir
	if cmd.Dir = sh.where(); req.Dir != "" {
		cmd.Dir = sandbox.Resolve(cmd.Dir, h.path(req.Dir))
	}
	p, err := h.session.Start(r.Context(), cmd)
	if err != nil {
		return out.refuse(err)
	}
	// A run belongs to its request: who goes ends it.
	h.stream(r.Context(), out, p, name, func() { leave(p, time.Millisecond) })
	return nil
}

// where is the directory that the last run ended in, as long as it is there.
func (sh *keptShell) where() string {
	f, err := os.OpenFile(filepath.Join(sh.dir, "cwd"), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return sh.cwd // nothing has run
	}
	defer f.Close()
	dir, err := io.ReadAll(io.LimitReader(f, syscall.PathMax))
	if info, staterr := os.Stat(string(dir)); err != nil || staterr != nil || !info.IsDir() {
		return ""
	}
	return string(dir)
}
