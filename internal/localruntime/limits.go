package localruntime

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/glassboxhq/glassbox/internal/localruntime/cgroup"
	"github.com/glassboxhq/glassbox/sandbox"
)

// limits are a sandbox's limits, read.
type limits struct {
	cgroup.Limits
	disk int64 // of the writable layer; 0: none was given
}

const (
	defaultDisk = 4 << 30 // of the writable layer
	minMemory   = 64 << 20
	// A sandbox takes some 32 tasks of the machine for itself, and two for each
	// process inside. A machine has 32768 at least.
	ownTasks     = 64
	processTasks = 2
	defaultPids  = 2048
)

// readLimits reads limits as OpenSandbox writes them. What cannot be read is
// an error; what is not known here is a warning.
func readLimits(texts map[string]string) (*limits, []string, error) {
	l := &limits{Limits: cgroup.Limits{Quiet: []string{"pids"}}}
	pids := int64(defaultPids)
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		var ok bool
		switch text := texts[name]; name {
		case "memory":
			l.Memory, ok = readBytes(text)
			if ok && l.Memory < minMemory {
				return nil, nil, sandbox.Invalid("limits.memory", "must be at least 64Mi, which the sandbox's kernel needs for itself")
			}
		case "cpu":
			l.CPU, ok = readCPU(text)
		case "pids":
			pids, ok = readPids(text)
			l.Quiet = nil
		case "disk", "ephemeral-storage":
			l.disk, ok = readBytes(text)
		default:
			ok = true
			warnings = append(warnings, "the limit "+strconv.Quote(name)+" is not held: the local runtime does not know it")
		}
		if !ok {
			return nil, nil, sandbox.Invalid("limits."+name, "must be a number with a unit, such as 512Mi for memory, 500m for cpu and 1000 (at least 16) for pids; it is "+strconv.Quote(texts[name]))
		}
	}
	l.Tasks = ownTasks + processTasks*pids
	return l, warnings, nil
}

var units = map[string]int64{
	"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12,
	"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,
}

func readBytes(text string) (int64, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	digits := strings.TrimRight(text, "bkmgti")
	unit, ok := units[strings.TrimSuffix(text[len(digits):], "b")]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n <= 0 || n > (1<<60)/unit {
		return 0, false
	}
	return n * unit, true
}

func readPids(text string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n, err == nil && n >= 16 && n <= 1<<20
}

// readCPU returns thousandths of a processor.
func readCPU(text string) (int64, bool) {
	text = strings.TrimSpace(text)
	scale := 1000.0
	if m, ok := strings.CutSuffix(text, "m"); ok {
		text, scale = m, 1
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n*scale >= 10 && n*scale <= 1e7) {
		return 0, false
	}
	return int64(n * scale), true
}
