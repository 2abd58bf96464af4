package glassbox_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox"
)

// A sandbox that was made and cannot be reached is deleted again, and the error
// says what is usually wrong. The time for that begins with the service's
// answer, however long that took.
func TestNeverReady(t *testing.T) {
	t.Parallel()
	var deleted atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			<-time.After(500 * time.Millisecond) // an image is fetched
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprintf(w, `{"id":%q,"status":{"state":"Running"}}`, fakeID)
		case strings.Contains(r.URL.Path, "/endpoints/"):
			fmt.Fprint(w, `{"endpoint":"127.0.0.1:1"}`) // nobody listens there
		case r.Method == http.MethodDelete:
			deleted.Store(true)
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer server.Close()
	began := time.Now()
	_, err := glassbox.Create(t.Context(), server.URL, &glassbox.Options{ReadyTimeout: 400 * time.Millisecond, RequestTimeout: 200 * time.Millisecond, StateDir: t.TempDir()})
	took := time.Since(began)
	for _, want := range []string{"400ms", "host_ip", "proxy"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if took < 900*time.Millisecond || took > 20*time.Second || !deleted.Load() {
		t.Errorf("after %v, deleted %v", took, deleted.Load())
	}
}
