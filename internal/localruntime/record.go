package localruntime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/internal/localruntime/lifecycle"
	"github.com/glassboxhq/glassbox/internal/localruntime/proc"
	"github.com/glassboxhq/glassbox/sandbox"
)

// record is what is kept of a sandbox, in sandbox.json.
type record struct {
	Version int          `json:"version"`
	Info    sandbox.Info `json:"info"`
	Spec    sandbox.Spec `json:"spec"` // without Env, which is in the boot file only
	Engine  string       `json:"engine"`
	ImageID string       `json:"image_id,omitempty"` // of the unpacked image that it begins from
	// Token and ExecdToken are gone when the sandbox is.
	Token      string    `json:"token,omitempty"`
	ExecdToken string    `json:"execd_token,omitempty"`
	Process    proc.Ref  `json:"process,omitzero"`
	Recorder   string    `json:"recorder,omitempty"`  // path of the binary that it runs
	Announced  bool      `json:"announced,omitempty"` // its id was told before it ran
	Deleting   bool      `json:"deleting,omitempty"`
	DeletedAt  time.Time `json:"deleted_at,omitzero"`
	// ChangedAt is when the state changed last.
	ChangedAt time.Time `json:"changed_at"`
	Events    []event   `json:"events,omitempty"` // oldest first
	// Notes are what was done from outside and is not in the history yet.
	Notes []*lifecycle.Note `json:"notes,omitempty"`
}

const recordVersion = 1

// copyInfo returns an Info that the caller may change.
func (r *record) copyInfo() *sandbox.Info {
	info := r.Info
	info.ChangedAt = r.ChangedAt
	info.Metadata = maps.Clone(info.Metadata)
	info.Warnings = slices.Clone(info.Warnings)
	return &info
}

// dir is the folder of one sandbox. Only history is written by the sandbox;
// the host opens nothing in it while the sandbox lives.
type dir string

func (d dir) file(name string) string { return filepath.Join(string(d), name) }
func (d dir) run() string             { return d.file("run") }
func (d dir) history() string         { return d.file("history") }
func (d dir) boot() string            { return filepath.Join(d.run(), "boot.json") }
func (d dir) socket() string          { return filepath.Join(d.run(), "recorder.sock") }
func (d dir) egress() string          { return filepath.Join(d.run(), "egress.sock") }
func (d dir) expiry() string          { return filepath.Join(d.run(), "expires_at") }

// save writes the record, so that after a crash there is the old or the new.
func (d dir) save(r *record) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("save sandbox %s: %w", r.Info.ID, err)
	}
	if err := writeFile(d.file("sandbox.json"), append(text, '\n')); err != nil {
		return fmt.Errorf("save sandbox %s: %w", r.Info.ID, err)
	}
	return nil
}

func (d dir) load() (*record, error) {
	text, err := os.ReadFile(d.file("sandbox.json"))
	if err != nil {
		return nil, fmt.Errorf("load sandbox: %w", err)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("load sandbox: read %s: %w", d.file("sandbox.json"), err)
	}
	if r.Version != recordVersion || r.Info.ID != filepath.Base(string(d)) {
		return nil, fmt.Errorf("load sandbox: %s is not of this version or not of this sandbox", d.file("sandbox.json"))
	}
	return &r, nil
}

// loadOr is load, and for a record that cannot be read returns what is known
// without it. A folder with neither a record nor a history, in which nothing
// was done, gives an error.
func (d dir) loadOr() (*record, error) {
	rec, err := d.load()
	if err == nil {
		return rec, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, none := os.Lstat(filepath.Join(d.history(), historyFiles[0])); none != nil {
			return nil, err
		}
	}
	return d.unreadable(err), nil
}

// unreadable is the record of a sandbox whose own cannot be read. It names no
// process and no token: the sandbox can be deleted, and its history read.
func (d dir) unreadable(why error) *record {
	rec := &record{
		Version: recordVersion, Engine: ImageHost, Spec: sandbox.Spec{Image: ImageHost, Network: NetworkNone},
		Info: sandbox.Info{
			ID: filepath.Base(string(d)), State: sandbox.Unknown, Reason: "UNREADABLE", Image: ImageHost,
			Message: why.Error() + "; delete the sandbox, its history stays for a while",
		},
	}
	if info, err := os.Lstat(d.history()); err == nil {
		rec.Info.CreatedAt = info.ModTime().UTC()
	}
	// The folder run goes when the sandbox does. gVisor's launch file tells the
	// engines apart.
	if _, err := os.Lstat(d.run()); errors.Is(err, fs.ErrNotExist) {
		rec.Info.Message = why.Error()
		if info, err := os.Lstat(string(d)); err == nil {
			rec.DeletedAt = info.ModTime().UTC()
		}
	} else if _, err := os.Lstat(d.file("launch.json")); errors.Is(err, fs.ErrNotExist) {
		rec.Engine, rec.Info.Image, rec.Spec.Image = ImageHere, ImageHere, ImageHere
	}
	return rec
}

// writeExpiry tells the sandbox's init when to end; the zero time: never.
func (d dir) writeExpiry(at time.Time) error {
	if at.IsZero() {
		if err := os.Remove(d.expiry()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("write expiry: %w", err)
		}
		return nil
	}
	return writeFile(d.expiry(), []byte(at.UTC().Format(time.RFC3339Nano)+"\n"))
}

// writeFile replaces a file, mode 0600, whole or not at all, and returns when
// that is on the disk.
func writeFile(name string, content []byte) error {
	temp := filepath.Join(filepath.Dir(name), ".new-"+id.NewRandom()[:8])
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return syncDir(filepath.Dir(name))
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// console returns the last words of the sandbox's first process, for the text
// of an error.
func (d dir) console() string {
	text, _ := d.lastWords(2048)
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return ": " + strings.ToValidUTF8(text, "?")
}
