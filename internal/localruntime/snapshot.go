package localruntime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/glassboxhq/glassbox/sandbox"
)

// snapshot is the kept writable layer of a sandbox.
//
//	Creating ─► Ready ─┬─delete─► Deleting ─► gone
//	       └──► Failed ┘
//
// Its fields below dir are guarded by the runtime's mu.
type snapshot struct {
	id    string
	dir   snapshotDir
	rec   *snapshotRecord // replaced, never changed
	users int             // creations that begin from it just now
}

// snapshotRecord is what is kept of a snapshot, in snapshot.json.
type snapshotRecord struct {
	Version int              `json:"version"`
	Info    sandbox.Snapshot `json:"info"`
	// What the sandbox was made from, which one that begins from here needs, too.
	Image   string `json:"image"`
	Workdir string `json:"workdir"`
	Disk    int64  `json:"disk"` // size of the writable layer
}

// snapshotDir is the folder of one snapshot. What gVisor wrote into image came
// from a sandbox: it is handed to gVisor, and never read or unpacked here.
type snapshotDir string

func (d snapshotDir) file() string  { return filepath.Join(string(d), "snapshot.json") }
func (d snapshotDir) image() string { return filepath.Join(string(d), "image") }

// save writes the record, so that after a crash there is the old or the new.
func (d snapshotDir) save(r *snapshotRecord) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = writeFile(d.file(), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("save snapshot %s: %w", r.Info.ID, err)
	}
	return nil
}

// load reads the record. One that cannot be read is of a snapshot that failed,
// which can be deleted.
func (d snapshotDir) load() *snapshotRecord {
	var r snapshotRecord
	text, err := os.ReadFile(d.file())
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && (r.Version != recordVersion || r.Info.ID != filepath.Base(string(d))) {
		err = errors.New("it is not of this version or not of this snapshot")
	}
	if err == nil {
		return &r
	}
	r = snapshotRecord{Version: recordVersion, Info: sandbox.Snapshot{
		ID: filepath.Base(string(d)), State: sandbox.SnapshotFailed, Reason: "UNREADABLE",
		Message: "its record cannot be read: " + err.Error() + "; delete it",
	}}
	if info, err := os.Lstat(string(d)); err == nil {
		r.Info.CreatedAt = info.ModTime().UTC()
	}
	return &r
}

// sync waits until the image is on the disk, and returns its size.
func (d snapshotDir) sync() (int64, error) {
	entries, err := os.ReadDir(d.image())
	if err != nil {
		return 0, err
	}
	var size int64
	for _, entry := range entries {
		n, err := syncFile(filepath.Join(d.image(), entry.Name()))
		if err != nil {
			return 0, err
		}
		size += n
	}
	return size, errors.Join(syncDir(d.image()), syncDir(string(d)))
}

func syncFile(name string) (int64, error) {
	file, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	err = errors.Join(file.Chmod(0o600), file.Sync())
	info, statErr := file.Stat()
	if err = errors.Join(err, statErr, file.Close()); err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, &fs.PathError{Op: "sync", Path: name, Err: errors.New("is no plain file")}
	}
	return info.Size(), nil
}
