package record

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// fileAct is an act on files of ours that changes some. It is an operation of
// its own, so what it did is not told of a command beside it.
type fileAct struct {
	root      string
	path, old string // below the root; it works there and on what lies below
	inside    [2]bool
	removes   bool      // what was at path is gone then; what was at old always is
	size      int64     // of a file that was written
	written   time.Time // its time then; zero: not known
	hides     bool      // something below it was left out
}

// clockSlack is how coarse the times of files are.
const clockSlack = 10 * time.Millisecond

var changing = []string{
	history.FileWrite, history.FileAppend, history.FileEdit, history.FileDelete, history.FileMakeDir,
	history.FileMove, history.FileSetMode, history.FileUpload,
}

// beginAct tells that an act on files is about to begin. It returns nil if it
// changes nothing that is looked at.
func (e *effects) beginAct(kind, full string) *doer {
	if e == nil || !slices.Contains(changing, kind) {
		return nil
	}
	act := &fileAct{root: e.opts.root, removes: kind == history.FileDelete}
	act.path, act.inside[0] = relative(e.opts.root, full)
	if !act.inside[0] && kind != history.FileMove {
		return nil
	}
	return e.add(&doer{act: act})
}

// endAct tells that an act has ended.
func (e *effects) endAct(p *doer, file *history.File, written time.Time) {
	if e == nil || p == nil {
		return
	}
	e.mu.Lock()
	p.ended, p.act.written = time.Now(), written
	if file.AfterSize != nil {
		p.act.size = *file.AfterSize
	}
	if file.OldPath != "" {
		p.act.old, p.act.inside[1] = relative(e.opts.root, file.OldPath)
	}
	e.acts++
	full := e.acts > maxActs
	e.mu.Unlock()
	if full {
		e.wake()
	}
}

// relative is a path below a directory.
func relative(root, full string) (string, bool) {
	if full == root {
		return "", true
	}
	return strings.CutPrefix(full, strings.TrimSuffix(root, "/")+"/")
}

// deed is one of the two places of an act.
type deed struct {
	*doer
	removes bool
}

// leaveOut takes out what acts of ours did.
func (f *finding) leaveOut(acts []doer) {
	if len(acts) == 0 || len(f.list) == 0 {
		return
	}
	deeds := map[string][]deed{}
	above := map[string]bool{} // directories that an act may have made on its way
	for i := range acts {
		a := acts[i].act
		for j, name := range []string{a.path, a.old} {
			if !a.inside[j] {
				continue
			}
			deeds[name] = append(deeds[name], deed{&acts[i], j == 1 || a.removes})
			for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
				above[dir] = true
			}
		}
	}
	f.list = slices.DeleteFunc(f.list, func(x effect) bool {
		return !there(&x.before) && x.after.Mode.IsDir() && above[x.path] || strings.HasPrefix(path.Base(x.path), sandbox.TempPrefix)
	})
	kept := f.list[:0]
	for _, x := range f.list {
		if !x.doneBy(deeds) {
			kept = append(kept, x)
		}
	}
	clear(f.list[len(kept):])
	f.list = kept
}

// doneBy reports whether acts of ours did it all. What somebody did after them
// remains, as he found it.
func (x *effect) doneBy(deeds map[string][]deed) bool {
	for at := x.path; ; at = path.Dir(at) {
		if at == "." {
			at = ""
		}
		for _, d := range deeds[at] {
			if d.did(x) {
				d.act.hides = d.act.hides || at != x.path
				return true
			}
		}
		if at == "" {
			return false
		}
	}
}

func (d *deed) did(x *effect) bool {
	switch {
	case d.ended.IsZero(), there(&x.after) && !d.since(&x.after), !there(&x.after) && d.removes:
		return true
	case d.removes: // it was made again
		x.before = sandbox.ScanEntry{}
	case there(&x.after) && !there(&x.before): // what the act had made was changed
		x.before = x.after
		x.before.Size = d.act.size
		x.before.Modified--
	}
	return false
}

// since reports whether a file was changed after the act.
func (d *deed) since(e *sandbox.ScanEntry) bool {
	if a := d.act; !a.written.IsZero() && e.Path == a.path {
		return e.Modified != a.written.UnixNano() || e.Size != a.size
	}
	return time.Unix(0, e.Changed).After(d.ended.Add(clockSlack))
}

// beside tells of acts on whole directories at the time of a command: what it
// did in there cannot be told from what they did.
func (d *deeds) beside(p *doer, acts []doer) {
	for i := range acts {
		a := &acts[i]
		early := !a.ended.IsZero() && a.ended.Before(p.began)
		late := !p.ended.IsZero() && p.ended.Before(a.began)
		if a.act.hides && !early && !late && d.incomplete == "" {
			d.incomplete = "a request worked at the same time on all below " + path.Join(a.act.root, a.act.path) + "; what changed there is left out"
		}
	}
}
