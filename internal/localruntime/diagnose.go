package localruntime

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/glassboxhq/glassbox/internal/localruntime/lifecycle"
)

// Diagnose tells what is known of a sandbox, without its secrets.
func (rt *Runtime) Diagnose(ctx context.Context, id string) (*lifecycle.Diagnosis, error) {
	b, err := rt.find(ctx, id)
	if err != nil {
		return nil, err
	}
	rec := b.record()
	d := &lifecycle.Diagnosis{Facts: b.facts(rec)}
	for _, e := range rec.Events {
		d.Events = append(d.Events, lifecycle.Event{At: e.At, What: e.What, Message: e.Message})
	}
	text, cut := b.dir.lastWords(maxLastWords)
	for _, secret := range []string{rec.Token, rec.ExecdToken} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	d.Console, d.Cut = text, cut
	return d, nil
}

// facts are what a sandbox is, by name.
func (b *box) facts(rec *record) [][2]string {
	info := b.info()
	facts := [][2]string{
		{"id", info.ID},
		{"name", info.Name},
		{"state", string(info.State)},
		{"reason", info.Reason},
		{"message", info.Message},
		{"image", info.Image},
		{"snapshot", info.Snapshot},
		{"network", rec.Spec.Network},
		{"workdir", rec.Spec.Workdir},
		{"history", rec.Spec.History},
		{"created", shown(info.CreatedAt)},
		{"changed", shown(rec.ChangedAt)},
		{"expires", shown(info.ExpiresAt)},
		{"process", strconv.Itoa(rec.Process.PID)},
		{"recorder answers", strconv.FormatBool(b.control.connected())},
	}
	for _, part := range []struct {
		name   string
		values map[string]string
	}{{"limit", rec.Spec.Limits}, {"metadata", info.Metadata}} {
		for _, key := range slices.Sorted(maps.Keys(part.values)) {
			facts = append(facts, [2]string{part.name + " " + key, part.values[key]})
		}
	}
	for _, warning := range info.Warnings {
		facts = append(facts, [2]string{"warning", warning})
	}
	return slices.DeleteFunc(facts, func(fact [2]string) bool { return fact[1] == "" })
}

func shown(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// maxLastWords bounds what is told of what a sandbox's first process printed.
const maxLastWords = 256 << 10

// lastWords returns the end of what the first process has printed, also of a
// sandbox that failed.
func (d dir) lastWords(most int64) (string, bool) {
	text, cut, err := tail(d.file(consoleLog), most)
	if errors.Is(err, fs.ErrNotExist) {
		text, cut, _ = tail(d.lastConsole(), most) // there is none of a sandbox that runs
	}
	return text, cut
}

// consoleLog is the engine's file, no path of the sandbox.
const consoleLog = "console.log"

// lastConsole is what is kept of it when the sandbox has failed.
func (d dir) lastConsole() string { return d.file("last-console.log") }

// keepConsole keeps the end of the console's log, which goes with the engine's
// files.
func (d dir) keepConsole() error {
	text, _, err := tail(d.file(consoleLog), maxLastWords)
	if err != nil || text == "" {
		return nil
	}
	return writeFile(d.lastConsole(), []byte(text))
}

// tail reads the end of a file, and tells if there is more before it.
func tail(name string, most int64) (text string, cut bool, err error) {
	file, err := os.Open(name)
	if err != nil {
		return "", false, err
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return "", false, err
	}
	begin := max(0, size-most)
	content, err := io.ReadAll(io.NewSectionReader(file, begin, most))
	return string(content), begin > 0, err
}
