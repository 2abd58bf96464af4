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
				Target: target, Sandbox: target, Outcome: act.Denied, Code: "forbidden", RequestID: "r", Detail: `{"a":"<b>"}`,
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
		list(act.Query{Limit: 10, UserName: "研究员", RequestID: "r", Actions: []string{"x", "sandbox.pause"}, Outcomes: []act.Outcome{act.Denied}}, all[2], all[1], all[0])
		list(act.Query{Limit: 10, Outcomes: []act.Outcome{act.Done, act.Failed}})
		list(act.Query{Limit: 10, Sandbox: "local/a", Oldest: true}, all[0], all[2])
		list(act.Query{Limit: 10, After: all[0].ID, Oldest: true}, all[1], all[2])
		list(act.Query{Limit: 10, Since: epoch.Add(time.Hour), Until: epoch.Add(2 * time.Hour)}, all[1])
		for sandbox, want := range map[string]*act.Act{"local/a": all[0], "local/b": nil} {
			if got, err := log.Get(ctx, sandbox, all[0].ID); err != nil || cmp.Diff(got, want) != "" {
				t.Errorf("%s: %+v, %v", sandbox, got, err)
			}
		}
		if err := log.Sweep(ctx, epoch.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		list(act.Query{Limit: 10}, all[2], all[1])
	})
}
