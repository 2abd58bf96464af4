package opensandbox_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/sandbox/opensandbox"
)

// Where the clocks of service and client differ the service's counts
// (FB-079).
func TestFB079ServiceClock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		ahead time.Duration
		date  string // "": as ahead says
	}{
		{"fast", 10 * time.Minute, ""},
		{"slow", -10 * time.Minute, ""},
		{"the same", 0, ""},
		{"not told", 0, "yesterday"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", time.Now().Add(tt.ahead).UTC().Format(http.TimeFormat))
				if tt.date != "" {
					w.Header().Set("Date", tt.date)
				}
				_, _ = io.WriteString(w, `{"id":"`+boxID+`"}`)
			}))
			defer server.Close()
			p, err := opensandbox.New(server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if off := time.Until(p.Now()); off.Abs() > time.Second {
				t.Errorf("before it was asked it is %v ahead", off)
			}
			if _, err := p.Get(t.Context(), boxID); err != nil {
				t.Fatal(err)
			}
			if off := time.Until(p.Now()) - tt.ahead; off.Abs() > 2*time.Second {
				t.Errorf("it is %v off", off)
			}
		})
	}
}
