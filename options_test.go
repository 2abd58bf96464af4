package glassbox_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox"
	"github.com/glassboxhq/glassbox/sandbox"
)

// All that is wrong with a call is told at once, before anything is sent: the
// field, its value and the rule.
func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := glassbox.Create(t.Context(), "http://u:s3cret-value@h/v1", &glassbox.Options{
		Name: strings.Repeat("x", 129), Image: "a b", Workdir: "w", TTL: time.Second, Cleanup: "soon", CleanupTTL: 1, Network: "host",
		HistoryMode: "some", RequestTimeout: -1, ReadyTimeout: 1 << 62, ConsumerWait: 1 << 62, ArchiveDir: "/a", Archive: (*nothing)(nil),
		Limits: map[string]string{"memory": "lots"}, Metadata: map[string]string{"a": "x y"}, Env: map[string]string{"A=": "s3cret-value"},
		Concurrency: &glassbox.Concurrency{Commands: 257}, History: &glassbox.HistoryConfig{CompressionLevel: 10},
	})
	for _, want := range []string{
		"url: must not hold credentials", `name: is "xxx`, `image: is "a b"`, `workdir: is "w"`, "ttl: is 1s, but must", "cleanup: is soon, but must", "cleanup_ttl: is 1ns, but must",
		"network: is host, but must", "history: is some, but must", "request_timeout: is -1ns, but must", "ready_timeout: is ", "consumer_wait: is ", "archive: is /a, but must",
		`limits.memory: is "lots"`, `metadata: the value of "a" is "x y"`, "env: the name", "max_parallel_commands: ", "compression_level",
	} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if !errors.Is(err, sandbox.ErrInvalid) || strings.Contains(fmt.Sprint(err), "s3cret-value") {
		t.Errorf("got %v", err)
	}
}

// nothing is no history.
type nothing struct{ glassbox.Archive }

// Each bound is where it is said to be.
func TestBounds(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	year := 365 * 24 * time.Hour
	for name, tt := range map[string]struct {
		opts  glassbox.Options
		field string // empty: it is right
	}{
		"shortest life":    {glassbox.Options{TTL: time.Minute}, ""},
		"longest life":     {glassbox.Options{TTL: year}, ""},
		"too short":        {glassbox.Options{TTL: time.Minute - 1}, "ttl"},
		"too long":         {glassbox.Options{TTL: year + 1}, "ttl"},
		"negative":         {glassbox.Options{TTL: -time.Hour}, "ttl"},
		"no cleanup ttl":   {glassbox.Options{Cleanup: glassbox.AfterTTL}, "cleanup_ttl"},
		"cleanup ttl":      {glassbox.Options{Cleanup: glassbox.AfterTTL, CleanupTTL: time.Second}, ""},
		"alone":            {glassbox.Options{CleanupTTL: time.Minute}, "cleanup_ttl"},
		"request timeout":  {glassbox.Options{RequestTimeout: 24 * time.Hour}, ""},
		"too patient":      {glassbox.Options{RequestTimeout: 24*time.Hour + 1}, "request_timeout"},
		"ready timeout":    {glassbox.Options{ReadyTimeout: -1}, "ready_timeout"},
		"no wait":          {glassbox.Options{ConsumerWait: -1}, ""},
		"wait":             {glassbox.Options{ConsumerWait: time.Hour + 1}, "consumer_wait"},
		"longest name":     {glassbox.Options{Name: strings.Repeat("研", 128)}, ""},
		"too long a name":  {glassbox.Options{Name: strings.Repeat("研", 129)}, "name"},
		"many commands":    {glassbox.Options{Concurrency: &glassbox.Concurrency{Commands: 256}}, ""},
		"too many":         {glassbox.Options{Concurrency: &glassbox.Concurrency{Reads: 1025}}, "max_parallel_file_reads"},
		"little history":   {glassbox.Options{History: &glassbox.HistoryConfig{MaxDatabaseBytes: 1 << 20}}, "max_database_bytes"},
		"unending history": {glassbox.Options{History: &glassbox.HistoryConfig{TTLDays: -1}}, ""},
	} {
		tt.opts.StateDir = t.TempDir()
		_, err := glassbox.Create(t.Context(), server.URL, &tt.opts)
		e, _ := errors.AsType[*sandbox.Error](err)
		if wrong := errors.Is(err, sandbox.ErrInvalid); wrong != (tt.field != "") || wrong && e.Field != tt.field {
			t.Errorf("%s: got %v, want the field %q", name, err, tt.field)
		}
	}
}
