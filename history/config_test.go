package history_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

func TestConfigDefaults(t *testing.T) {
	var none *history.Config
	if err := none.Validate(); err != nil {
		t.Error(err)
	}
	got := none.Filled()
	if got.TTLDays != 7 || got.MaxDatabaseBytes != 128<<20 || got.MaxOperationOutputBytes != 16<<20 || got.OverflowPolicy != history.DeleteOldest ||
		got.OutputChunkBytes != 16<<10 || got.Sync != history.InitializeOrAdopt || got.Consistency != history.StrictStart || got.NoStdout {
		t.Errorf("got %+v", got)
	}
	values := none.Values()
	if len(values) != 24 || values["ttl_days"] != int64(7) || values["capture_stdout"] != true || values["compression"] != "identity" {
		t.Errorf("got %v", values)
	}
	if _, ok := values["consistency"]; ok {
		t.Error("what is not for a history stands in it")
	}
}

// Every bound of the seed, with the field that an error names.
func TestConfigBounds(t *testing.T) {
	for _, tt := range []struct {
		field   string
		good    []any
		refused []any
	}{
		{"ttl_days", []any{1, 3650, nil}, []any{0, -1, 1.5, "7", true}},
		{"max_database_bytes", []any{16<<20 + 1, 1 << 40}, []any{16<<20 - 1, 0, nil}},
		{"max_operation_output_bytes", []any{1, 128<<20 - 1}, []any{0, 128 << 20}},
		{"overflow_policy", []any{"delete_oldest", "stop_recording", "fail_operation"}, []any{"", "drop", 1}},
		{"capture_stdout", []any{true, false}, []any{"true", 1, nil}},
		{"capture_stderr", []any{true, false}, []any{0}},
		{"output_chunk_bytes", []any{4 << 10, 256 << 10}, []any{4<<10 - 1, 256<<10 + 1}},
		{"output_flush_bytes", []any{1, 1 << 20}, []any{0, 1<<20 + 1}},
		{"output_flush_interval_ms", []any{0, 1000}, []any{-1, 1001}},
		{"output_queue_max_bytes", []any{64 << 10, 64 << 20}, []any{4<<10 - 1, 64<<20 + 1}},
		{"output_queue_max_chunks", []any{1, 4096}, []any{0, 4097}},
		{"output_write_timeout_seconds", []any{0.5, 300}, []any{0, 300.5, nil}},
		{"compression", []any{"identity", "gzip", "zlib"}, []any{"zstd"}},
		{"compression_min_bytes", []any{0, 1 << 30}, []any{-1}},
		{"compression_level", []any{1, 9}, []any{0, 10}},
		{"cleanup_interval_operations", []any{1, 10_000}, []any{0, 10_001}},
		{"cleanup_on_connect", []any{true, false}, []any{"no"}},
		{"cleanup_min_interval_seconds", []any{0, 86_400}, []any{-1, 86_401}},
		{"consumer_active_ttl_days", []any{1, 3650}, []any{0, 3651}},
		{"sqlite_busy_timeout_ms", []any{100, 60_000}, []any{99, 60_001}},
		{"sqlite_cache_bytes", []any{1 << 20, 64 << 20}, []any{1<<20 - 1, 64<<20 + 1}},
		{"helper_query_max_bytes", []any{64 << 10, 32 << 20}, []any{64<<10 - 1, 32<<20 + 1}},
		{"helper_envelope_max_bytes", []any{64 << 10, 16 << 20}, []any{64<<10 - 1, 16<<20 + 1}},
		{"stale_started_after_seconds", []any{30, 86_400}, []any{29, 86_401}},
	} {
		for _, value := range tt.good {
			changed, err := (&history.Config{}).With(map[string]any{tt.field: value})
			if err != nil {
				t.Errorf("%s = %v: %v", tt.field, value, err)
				continue
			}
			got, want := roundTrip(t, changed).Values()[tt.field], value
			if n, ok := value.(int); ok {
				want = int64(n)
			}
			if f, ok := got.(float64); ok && f == float64(int64(f)) {
				got = int64(f)
			}
			if got != want {
				t.Errorf("%s: got %v, want %v", tt.field, got, want)
			}
		}
		for _, value := range tt.refused {
			_, err := (&history.Config{}).With(map[string]any{tt.field: value})
			wantConfigFault(t, err, tt.field)
		}
	}
	_, err := (&history.Config{}).With(map[string]any{"ttl": 1})
	wantConfigFault(t, err, "ttl")
	wantConfigFault(t, (&history.Config{OutputFlushBytes: 1 << 20, OutputQueueMaxBytes: 64 << 10}).Validate(), "output_flush_bytes")
	wantConfigFault(t, (&history.Config{OutputChunkBytes: 64 << 10, OutputQueueMaxBytes: 32 << 10}).Validate(), "output_chunk_bytes")
	wantConfigFault(t, (&history.Config{Sync: "mine"}).Validate(), "config_sync")
	wantConfigFault(t, (&history.Config{Consistency: "x"}).Validate(), "consistency")
}

func wantConfigFault(t *testing.T, err error, field string) {
	t.Helper()
	var e *sandbox.Error
	if !errors.As(err, &e) || e.Code != sandbox.CodeHistoryConfig || e.Field != field {
		t.Errorf("got %v, want %s about %s", err, sandbox.CodeHistoryConfig, field)
	}
}

func roundTrip(t *testing.T, c *history.Config) *history.Config {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back history.Config
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Filled(), back.Filled()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", text, diff)
	}
	return &back
}

// What another program wrote and we do not take is the default or the nearest,
// alone.
func TestReadConfig(t *testing.T) {
	got := history.ReadConfig(map[string]any{
		"ttl_days": nil, "max_database_bytes": float64(16 << 20), "compression": "zstd", "output_flush_interval_ms": 5000.0, "of another": 1.0,
	})
	if got.TTLDays >= 0 || got.MaxDatabaseBytes != 16<<20 || got.Compression != history.Identity || got.OutputFlushIntervalMS != 1000 || got.Validate() != nil {
		t.Errorf("got %+v, %v", got, got.Validate())
	}
}
