package execd

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/glassboxhq/glassbox/internal/idle"
	"github.com/glassboxhq/glassbox/sandbox"
)

// metrics are what the sandbox uses now.
type metrics struct {
	CPUs      float64 `json:"cpu_count"`
	CPUUsed   float64 `json:"cpu_used_pct"`
	MemTotal  float64 `json:"mem_total_mib"`
	MemUsed   float64 `json:"mem_used_mib"`
	Timestamp int64   `json:"timestamp"` // Unix milliseconds
}

// meter measures the time of processors between two readings, so that nobody
// waits for a second to pass.
type meter struct {
	memory float64 // the sandbox's limit in bytes; 0: none
	cpus   float64 // and of processors

	mu   sync.Mutex
	at   time.Time
	busy float64 // seconds
	used float64 // per cent of the processors, as it was last measured
}

// The first reading has nothing before it and waits a moment for a second one;
// readings closer together than that are one.
const meterPause = 100 * time.Millisecond

func (m *meter) read(ctx context.Context) (*metrics, error) {
	total, used, err := memory()
	if err != nil {
		return nil, err
	}
	if m.memory > 0 && m.memory < total {
		total = m.memory
	}
	used = min(used, total)
	cpus := float64(runtime.NumCPU())
	if m.cpus > 0 {
		cpus = min(cpus, m.cpus)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at.IsZero() {
		m.at, m.busy = time.Now(), cpuSeconds()
		select {
		case <-time.After(meterPause):
		case <-ctx.Done():
			return nil, sandbox.FromContext(ctx, "read metrics")
		}
	}
	if past := time.Since(m.at); past >= meterPause {
		busy := cpuSeconds()
		m.used = min(max((busy-m.busy)/past.Seconds()/cpus*100, 0), 100)
		m.at, m.busy = time.Now(), busy
	}
	round := func(x float64) float64 { return math.Round(x*100) / 100 }
	return &metrics{cpus, round(m.used), round(total / (1 << 20)), round(used / (1 << 20)), time.Now().UnixMilli()}, nil
}

// memory is the sandbox's: what its control group allows and counts, or what
// the kernel says.
func memory() (total, used float64, err error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, 0, &sandbox.Error{Op: "read metrics", Code: sandbox.CodeInternal, Err: err}
	}
	fields := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 {
			fields[words[0]], _ = strconv.ParseFloat(words[1], 64)
		}
	}
	total = fields["MemTotal:"] * 1024
	used = total - fields["MemAvailable:"]*1024
	for _, names := range [][2]string{
		{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
	} {
		limit, now := number(names[0]), number(names[1])
		if 0 < limit && limit < total && now > 0 {
			return limit, now, nil
		}
	}
	return total, used, nil
}

// number reads a file of one number; 0: there is none.
func number(name string) float64 {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	return n
}

const ticksPerSecond = 100 // on every Linux that we run on

// cpuSeconds is the time that the processes that live in the sandbox
// have worked.
func cpuSeconds() (sum float64) {
	names, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ") // behind the name of the program
		words := strings.Fields(rest)
		for i := 11; i <= 12 && i < len(words); i++ { // utime, stime
			n, _ := strconv.ParseFloat(words[i], 64)
			sum += n / ticksPerSecond
		}
	}
	return sum
}

func (h *Handler) readMetrics(w http.ResponseWriter, r *http.Request) error {
	m, err := h.meter.read(r.Context())
	if err != nil {
		return err
	}
	return answer(w, m)
}

// watchEvery is the time between two metrics of a watch.
const watchEvery = time.Second

// watchMetrics writes one object a line until the client goes.
func (h *Handler) watchMetrics(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	flush, enc := http.NewResponseController(w).Flush, json.NewEncoder(idle.Answer(w, h.opts.Idle))
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		m, err := h.meter.read(r.Context())
		if err != nil {
			return err
		}
		if enc.Encode(m) != nil || flush() != nil {
			return nil // the client has gone
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return nil
		}
	}
}
