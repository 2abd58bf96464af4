package connection_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/glassboxhq/glassbox/internal/console/connection"
	"github.com/glassboxhq/glassbox/internal/vault"
)

func TestConfigure(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		no, key, other := false, vault.Secret("k"), vault.Secret("other")
		var id string
		for _, tt := range []struct {
			name     string
			want     connection.Configured
			changed  bool
			revision int64
			key      vault.Secret
			enabled  bool
		}{
			{"new", connection.Configured{Name: "Lab", Endpoint: "sandboxes.example", Key: &key}, true, 1, "k", true},
			{"again", connection.Configured{Name: "Lab", Endpoint: "http://sandboxes.example", Key: &key}, false, 1, "k", true},
			{"without its key", connection.Configured{Name: "Lab", Endpoint: "http://sandboxes.example"}, false, 1, "k", true},
			{"another key", connection.Configured{Name: "Lab", Endpoint: "http://sandboxes.example", Key: &other}, true, 2, "other", true},
			{"off", connection.Configured{Name: "Lab", Endpoint: "http://sandboxes.example", Enabled: &no}, true, 3, "other", false},
			{"not told", connection.Configured{Name: "Lab", Endpoint: "http://sandboxes.example"}, false, 3, "other", false},
			{"renamed, moved", connection.Configured{Name: "lab", Endpoint: "http://other.example", Key: &other}, true, 4, "other", false},
		} {
			want := tt.want
			c, changed, err := f.Configure(ctx, &want)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if id == "" {
				id = c.ID
			}
			if changed != tt.changed || c.ID != id || c.Revision != tt.revision || c.Enabled != tt.enabled || c.Name != tt.want.Name || !c.HasKey {
				t.Errorf("%s: changed %v, %+v", tt.name, changed, c)
			}
		}
		if _, _, err := f.Configure(ctx, &connection.Configured{Name: "lab", Endpoint: "http://third.example"}); err == nil {
			t.Error("another endpoint gets the key that was given for the old one")
		}
		if _, _, err := f.Configure(ctx, &connection.Configured{Name: "bad", Endpoint: "http://169.254.169.254"}); err == nil {
			t.Error("a metadata service is configured")
		}
	})
}

// Two servers of one database start at the same time.
func TestConfigureAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		second := newFixture(t, f.db, filepath.Join(t.TempDir(), "key"))
		var work sync.WaitGroup
		for range 4 {
			for _, fleet := range []*fixture{f, second} {
				work.Go(func() {
					if _, _, err := fleet.Configure(t.Context(), &connection.Configured{Name: "lab", Endpoint: "http://sandboxes.example"}); err != nil {
						t.Error(err)
					}
				})
			}
		}
		work.Wait()
		if list, err := f.Connections(t.Context()); err != nil || len(list) != 1 || list[0].Revision != 1 {
			t.Errorf("%v %v", list, err)
		}
	})
}
