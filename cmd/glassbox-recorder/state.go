package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

// runDir is where programs of the system keep what is theirs while they run.
const runDir = "/run"

// openState names the directory for what shells of execd's wire keep between
// their runs. It does not lie in the temporary directory, which programs empty,
// nor with the history, which outlives the sandbox. What a recorder that died
// has left is removed. Where there is no such place, it is the temporary
// directory all the same.
func openState(historyDir string) (dir string, remove func()) {
	sum := sha256.Sum256([]byte(historyDir))
	dir = filepath.Join(runDir, "glassbox-"+hex.EncodeToString(sum[:4]))
	err := os.RemoveAll(dir)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return "", func() {}
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}
