package act_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/internal/console/act"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/db/dbtest"
)

func TestLog(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		log := act.New(d)
		epoch := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		var all []*act.Act
		for i, target := range []string{"local/a", "local/b", "local/a"} {
			a := &act.Act{
				At: epoch.Add(time.Duration(i) * time.Hour), UserID: "u", UserName: "研究员", Via: "token", Address: "::1", Action: "sandbox.pause",
				Target: target, Outcome: act.Denied, Code: "forbidden", RequestID: "r", Detail: `{"a":"<b>"}`,
			}
			if err := log.Add(ctx, a); err != nil {
				t.Fatal(err)
			}
			all = append(all, a)
		}
		list := func(q act.Query, want ...*act.Act) {
			t.Helper()
			got, err := log.List(ctx, &q)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Error(diff)
			}
		}
		list(act.Query{Limit: 10}, all[2], all[1], all[0])
		list(act.Query{Limit: 2}, all[2], all[1])
		list(act.Query{Limit: 10, Before: all[1].ID}, all[0])
		list(act.Query{Limit: 10, Target: "local/a"}, all[2], all[0])
		list(act.Query{Limit: 10, UserID: "other"})
		if err := log.Sweep(ctx, epoch.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		list(act.Query{Limit: 10}, all[2], all[1])
	})
}
