package mirror_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/internal/console/mirror"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/db/dbtest"
	"github.com/glassboxhq/glassbox/sandbox"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		m := mirror.New(d, nil)
		if s, err := m.Settings(ctx); err != nil || s.Revision != 0 || s.Age != 365*24*time.Hour || s.Bytes != 20<<30 {
			t.Fatalf("as they came: %+v, %v", s, err)
		}
		want := mirror.Limits{Age: time.Hour, Bytes: 1, ByConnection: map[string]mirror.Limits{"local": {Dies: true, BodyAge: time.Minute}}}
		set := func(revision int64, wantRevision int64) {
			t.Helper()
			s, err := m.Set(ctx, revision, &want)
			if wantRevision == 0 {
				if !isCode(err, mirror.CodeSettingsChanged) {
					t.Errorf("revision %d: %v", revision, err)
				}
				return
			}
			if err != nil || s.Revision != wantRevision || s.UpdatedAt.IsZero() {
				t.Errorf("revision %d: %+v, %v", revision, s, err)
			}
		}
		set(1, 0) // it was never set
		set(0, 1)
		set(0, 0)
		set(1, 2)
		set(1, 0)
		set(-1, 3)
		got, err := m.Limits(ctx)
		if diff := cmp.Diff(got, &want); diff != "" || err != nil {
			t.Errorf("%s, %v", diff, err)
		}
		if own := got.Of("local"); !own.Dies || own.Age != 0 || got.Of("other").Age != time.Hour {
			t.Errorf("%+v", own)
		}
		if _, err := m.Set(ctx, -1, &mirror.Limits{ByConnection: map[string]mirror.Limits{"x": {Age: -1}}}); !isCode(err, sandbox.CodeInvalid) {
			t.Errorf("negative: %v", err)
		}
	})
}

func TestPruneGone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		m := mirror.New(d, nil)
		for _, name := range []string{"gone", "there"} {
			if err := m.See(ctx, "local", &sandbox.Info{ID: name}, time.Time{}); err != nil {
				t.Fatal(err)
			}
			_, b := secrets(1)
			store(t, m, begin(t, m, name), b)
		}
		if err := m.Gone(ctx, "local", "gone"); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			limits mirror.Limits
			want   int64
		}{{mirror.Limits{}, 0}, {mirror.Limits{Dies: true}, 1}, {mirror.Limits{Dies: true}, 0}} {
			if done, err := m.Prune(ctx, &tt.limits); err != nil || done.Operations != tt.want {
				t.Errorf("%+v: %+v, %v", tt.limits, done, err)
			}
		}
		if list, err := m.Histories(ctx, "local", "there"); err != nil || len(list) != 1 {
			t.Errorf("%v, %v", list, err)
		}
		if list, err := m.Sandboxes(ctx, ""); err != nil || len(list) != 1 || list[0].ID != "there" {
			t.Errorf("%v, %v", list, err)
		}
	})
}
