package door_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/glassboxhq/glassbox/internal/console/door"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/db/dbtest"
	"github.com/glassboxhq/glassbox/sandbox"
)

// fixture is a door whose time the test moves.
type fixture struct {
	*door.Door
	t   *testing.T
	db  *db.DB
	now atomic.Int64
}

func (f *fixture) pass(d time.Duration) { f.now.Add(int64(d)) }

func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := &fixture{t: t, db: d}
		f.now.Store(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).UnixNano())
		f.Door = door.New(d, &door.Options{Now: func() time.Time { return time.Unix(0, f.now.Load()) }})
		test(t, f)
	})
}

var here = door.From{Address: "192.0.2.1", Agent: "test"}

func (f *fixture) link(name string) door.Secret {
	f.t.Helper()
	link, _, err := f.NewLink(f.t.Context(), name)
	if err != nil {
		f.t.Fatal(err)
	}
	return link
}

func (f *fixture) signIn(name string) *door.In {
	f.t.Helper()
	in, err := f.SignInByLink(f.t.Context(), f.link(name), here)
	if err != nil {
		f.t.Fatal(err)
	}
	return in
}

func (f *fixture) add(name string, role door.Role, password door.Secret) *door.User {
	f.t.Helper()
	u, err := f.AddUser(f.t.Context(), name, role, password)
	if err != nil {
		f.t.Fatal(err)
	}
	return u
}

func want(t *testing.T, what string, err error, code sandbox.Code) {
	t.Helper()
	if code == "" && err != nil || code != "" && sandbox.CodeOf(err) != code {
		t.Errorf("%s: %v, want code %q", what, err, code)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		in := f.signIn(door.FirstUser)
		if in.User.Role != door.Admin || in.User.Name != "admin" {
			t.Errorf("the first user is %+v", in.User)
		}
		v, err := f.BySession(ctx, in.Session)
		if err != nil || v.User.ID != in.User.ID || v.Via != door.ViaLink || v.Entry != in.SignIn.ID {
			t.Fatalf("%+v, %v", v, err)
		}
		link := f.link("admin")
		var entered atomic.Int32
		var all sync.WaitGroup
		for range 10 { // at once
			all.Go(func() {
				if _, err := f.SignInByLink(ctx, link, here); err == nil {
					entered.Add(1)
				}
			})
		}
		all.Wait()
		if entered.Load() != 1 {
			t.Errorf("one link let %d in", entered.Load())
		}
		late := f.link("admin")
		f.pass(15 * time.Minute)
		_, err = f.SignInByLink(ctx, late, here)
		want(t, "late", err, door.CodeSignIn)
		f.pass(-time.Minute)
		_, err = f.SignInByLink(ctx, late, here)
		want(t, "the clock went back", err, door.CodeSignIn)
		for _, link := range []door.Secret{"", "gbl_", door.Secret("gbl_" + strings.Repeat("A", 1<<16)), in.Session, "gbl_' or 1=1 --"} {
			_, err := f.SignInByLink(ctx, link, here)
			want(t, "no link", err, door.CodeSignIn)
		}
		_, _, err = f.NewLink(ctx, "nobody")
		want(t, "link of nobody", err, door.CodeUserNotFound)
		off := true
		u := f.add("gone", door.Viewer, "")
		void := f.link("GONE")
		if _, err := f.ChangeUser(ctx, u.ID, &door.UserChange{Disabled: &off}, ""); err != nil {
			t.Fatal(err)
		}
		_, err = f.SignInByLink(ctx, void, here)
		want(t, "link of a disabled user", err, door.CodeSignIn)
	})
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.signIn("admin")
		f.add("研究员", door.Operator, "correct horse battery")
		f.add("linked", door.Viewer, "")
		try := func(name string, password door.Secret) (*door.In, error) {
			f.pass(time.Minute)
			return f.SignInByPassword(ctx, name, password, here)
		}
		in, err := try("研究员", "correct horse battery")
		if err != nil || in.User.Name != "研究员" || in.SignIn.How != door.ViaPassword {
			t.Fatalf("%v", err)
		}
		var texts []string
		for _, tt := range []struct {
			name     string
			password door.Secret
		}{
			{"研究员", "wrong horse battery"},
			{"研究员", ""},
			{"研究员", door.Secret(strings.Repeat("x", 1<<20))},
			{"nobody", "correct horse battery"},
			{"linked", ""},
			{"linked", "correct horse battery"},
			{strings.Repeat("n", 1<<20), "correct horse battery"},
			{"a\x00b' or 1=1", "correct horse battery"},
		} {
			_, err := try(tt.name, tt.password)
			want(t, tt.name[:min(9, len(tt.name))], err, door.CodeSignIn)
			texts = append(texts, err.Error())
		}
		for _, text := range texts {
			if text != texts[0] {
				t.Errorf("answers differ, which tells who is there: %q and %q", text, texts[0])
			}
		}
		for _, password := range []door.Secret{"short", "elevenchars", door.Secret(strings.Repeat("x", 1025))} {
			_, err := f.AddUser(ctx, "other", door.Viewer, password)
			want(t, "weak password", err, sandbox.CodeInvalid)
		}
	})
}

// An unknown name must take as long as a wrong password.
func TestUnknownNamesTakeAsLong(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.add("known", door.Admin, "correct horse battery")
		// By turns, and the fastest of each: other tests work beside.
		known, unknown := time.Hour, time.Hour
		for range 8 {
			for name, best := range map[string]*time.Duration{"known": &known, "unknown": &unknown} {
				f.pass(time.Minute)
				began := time.Now()
				_, err := f.SignInByPassword(t.Context(), name, "wrong horse battery", here)
				want(t, name, err, door.CodeSignIn)
				*best = min(*best, time.Since(began))
			}
		}
		if unknown < known/3 {
			t.Errorf("a known name takes %v, an unknown one %v", known, unknown)
		}
	})
}

func TestBruteForce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.add("target", door.Admin, "correct horse battery")
		limited := 0
		for i := range 20 { // from many addresses
			from := door.From{Address: "2001:db8:" + strconv.Itoa(i) + "::1"}
			_, err := f.SignInByPassword(ctx, "Target", "wrong horse battery", from)
			if sandbox.CodeOf(err) == door.CodeTooMany {
				limited++
				if wait, ok := errors.AsType[*door.TooMany](err); !ok || wait.After <= 0 {
					t.Errorf("no time to wait: %v", err)
				}
			}
		}
		if limited < 8 {
			t.Errorf("%d of 20 attempts at one account were refused", limited)
		}
		if _, err := f.SignInByLink(ctx, f.link("target"), here); err != nil {
			t.Errorf("whoever has a link is kept out, too: %v", err)
		}
		limited = 0
		for i := range 60 { // at many accounts, from the addresses of one host
			from := door.From{Address: "2001:db8:ffff:1::" + strconv.Itoa(i)}
			if _, err := f.SignInByPassword(ctx, "user"+strconv.Itoa(i), "x", from); sandbox.CodeOf(err) == door.CodeTooMany {
				limited++
			}
		}
		if limited < 25 {
			t.Errorf("%d of 60 attempts from one network were refused", limited)
		}
		f.pass(5 * time.Minute)
		if _, err := f.SignInByPassword(ctx, "target", "correct horse battery", here); err != nil {
			t.Errorf("after a while: %v", err)
		}
	})
}

func TestSignIns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		in := f.signIn("admin")
		comes := func(what string, secret door.Secret, code sandbox.Code) {
			t.Helper()
			_, err := f.BySession(ctx, secret)
			want(t, what, err, code)
		}
		for range 13 { // used every day
			f.pass(23 * time.Hour)
			comes("in use", in.Session, "")
		}
		f.pass(25 * time.Hour)
		comes("after 14 days", in.Session, door.CodeSignInNeeded)
		idle := f.signIn("admin")
		f.pass(23 * time.Hour)
		comes("after 23 hours", idle.Session, "")
		f.pass(24 * time.Hour)
		comes("idle for a day", idle.Session, door.CodeSignInNeeded)

		first, second := f.signIn("admin"), f.signIn("admin")
		list, err := f.SignIns(ctx, first.User.ID, "", 10)
		if err != nil || len(list) != 2 || list[0].ID != second.SignIn.ID || list[0].Address != here.Address {
			t.Fatalf("%d sign-ins, %v", len(list), err)
		}
		if list, err = f.SignIns(ctx, "", list[0].ID, 10); err != nil || len(list) != 1 {
			t.Errorf("second page: %d, %v", len(list), err)
		}
		other := f.add("other", door.Viewer, "")
		want(t, "sign out somebody else", f.SignOut(ctx, first.SignIn.ID, other.ID), door.CodeEntryNotFound)
		comes("still there", first.Session, "")
		want(t, "sign out", f.SignOut(ctx, first.SignIn.ID, first.User.ID), "")
		comes("signed out", first.Session, door.CodeSignInNeeded)
		want(t, "an admin ends another's", f.SignOut(ctx, second.SignIn.ID, ""), "")
		comes("ended", second.Session, door.CodeSignInNeeded)
		for _, secret := range []door.Secret{"", "gbs_", "gbs_x", f.link("admin")} {
			comes("none", secret, door.CodeSignInNeeded)
		}
	})
}

func TestUsers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		admin := f.signIn("admin").User
		_, err := f.AddUser(ctx, "ADMIN", door.Viewer, "")
		want(t, "the same name", err, door.CodeUserExists)
		for _, name := range []string{"", "a b", "a\nb", "<b>", strings.Repeat("x", 65), "\xff", "a/b"} {
			_, err := f.AddUser(ctx, name, door.Viewer, "")
			want(t, strconv.Quote(name), err, sandbox.CodeInvalid)
		}
		_, err = f.AddUser(ctx, "x", "root", "")
		want(t, "no role", err, sandbox.CodeInvalid)

		viewer, off, on, op := door.Viewer, true, false, door.Operator
		_, err = f.ChangeUser(ctx, admin.ID, &door.UserChange{Role: &viewer}, "")
		want(t, "the last admin steps down", err, door.CodeLastAdmin)
		_, err = f.ChangeUser(ctx, admin.ID, &door.UserChange{Disabled: &off}, "")
		want(t, "the last admin is disabled", err, door.CodeLastAdmin)
		want(t, "the last admin goes", f.RemoveUser(ctx, admin.ID), door.CodeLastAdmin)

		u := f.add("b", door.Viewer, "")
		in := f.signIn("b")
		if changed, err := f.ChangeUser(ctx, u.ID, &door.UserChange{Role: &op}, in.SignIn.ID); err != nil || changed.Role != door.Operator {
			t.Errorf("%+v, %v", changed, err)
		}
		if v, err := f.BySession(ctx, in.Session); err != nil || !v.May(door.Operator, door.SandboxesWrite) || v.May(door.Admin, door.Administer) {
			t.Errorf("the new role does not hold at once: %v", err)
		}
		if _, err := f.ChangeUser(ctx, u.ID, &door.UserChange{Disabled: &off}, in.SignIn.ID); err != nil {
			t.Fatal(err)
		}
		_, err = f.BySession(ctx, in.Session)
		want(t, "disabled", err, door.CodeSignInNeeded)
		if _, err := f.ChangeUser(ctx, u.ID, &door.UserChange{Disabled: &on}, ""); err != nil {
			t.Fatal(err)
		}
		_, err = f.BySession(ctx, in.Session)
		want(t, "enabled again, and signed out", err, door.CodeSignInNeeded)
		list, err := f.Users(ctx, "", 10)
		if err != nil || len(list) != 2 || list[0].Name != "admin" || list[1].Name != "b" {
			t.Errorf("%v %v", list, err)
		}
		want(t, "remove", f.RemoveUser(ctx, u.ID), "")
		want(t, "remove again", f.RemoveUser(ctx, u.ID), door.CodeUserNotFound)
	})
}

// Two admins who remove each other at once: one stays.
func TestLastAdminTogether(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for range 5 {
			a, b := f.add("a", door.Admin, ""), f.add("b", door.Admin, "")
			var both sync.WaitGroup
			for _, id := range []string{a.ID, b.ID} {
				both.Go(func() { _ = f.RemoveUser(t.Context(), id) })
			}
			both.Wait()
			left, err := f.Users(t.Context(), "", 10)
			if err != nil || len(left) != 1 {
				t.Fatalf("%d admins are left, %v", len(left), err)
			}
			if _, err := f.db.Exec(t.Context(), `delete from users`); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestTokens(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		u := f.add("ci", door.Operator, "")
		token, secret, err := f.AddToken(ctx, u.ID, "nightly", []door.Scope{door.SandboxesRead, door.Administer}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		v, err := f.ByToken(ctx, secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			role  door.Role
			scope door.Scope
			may   bool
		}{
			{door.Viewer, door.SandboxesRead, true},
			{door.Operator, door.SandboxesRead, true},
			{door.Operator, door.SandboxesWrite, false},
			{door.Admin, door.Administer, false}, // a token does not raise its owner
			{door.Viewer, door.Account, false},
			{door.Viewer, door.Any, true},
			{"", door.Any, false},
		} {
			if v.May(tt.role, tt.scope) != tt.may {
				t.Errorf("%s %s: %v", tt.role, tt.scope, !tt.may)
			}
		}
		_, err = f.BySession(ctx, secret)
		want(t, "a token as a session", err, door.CodeSignInNeeded)
		list, err := f.Tokens(ctx, "", "", 10)
		if err != nil || len(list) != 1 || list[0].Name != "nightly" || list[0].SeenAt.IsZero() {
			t.Errorf("%+v, %v", list, err)
		}
		f.pass(time.Hour)
		_, err = f.ByToken(ctx, secret)
		want(t, "expired", err, door.CodeToken)
		f.pass(-time.Minute)
		want(t, "somebody else's", f.RemoveToken(ctx, token.ID, "x"), door.CodeTokenNotFound)
		want(t, "revoke", f.RemoveToken(ctx, token.ID, u.ID), "")
		_, err = f.ByToken(ctx, secret)
		want(t, "revoked", err, door.CodeToken)
		for _, scopes := range [][]door.Scope{nil, {"everything"}, {door.Account}, {door.Any}} {
			_, _, err := f.AddToken(ctx, u.ID, "x", scopes, time.Hour)
			want(t, "scopes", err, sandbox.CodeInvalid)
		}
		for _, life := range []time.Duration{0, -time.Hour, 400 * 24 * time.Hour} {
			_, _, err := f.AddToken(ctx, u.ID, "x", []door.Scope{door.HistoryRead}, life)
			want(t, "life", err, sandbox.CodeInvalid)
		}
	})
}

// Nothing that opens the door stands in the database.
func TestAtRest(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		u := f.add("u", door.Admin, "correct horse battery")
		in := f.signIn("u")
		_, token, err := f.AddToken(ctx, u.ID, "t", []door.Scope{door.HistoryRead}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		secrets := []door.Secret{f.link("u"), in.Session, token, "correct horse battery"}
		for _, query := range []string{
			`select hash || user_id from links`, `select hash || agent || how from sign_ins`, `select hash || name || scopes from tokens`,
			`select name || coalesce(password, '') from users`,
		} {
			rows, err := db.Collect(ctx, f.db, func(row db.Row) (text string, err error) { return text, row.Scan(&text) }, query)
			if err != nil || len(rows) == 0 {
				t.Fatal(query, rows, err)
			}
			for _, secret := range secrets {
				bare := string(secret)[strings.Index(string(secret), "_")+1:]
				if strings.Contains(strings.Join(rows, "\n"), bare) {
					t.Errorf("%s shows a secret", query)
				}
			}
		}
	})
}

func TestSweep(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.signIn("admin")
		f.link("admin")
		f.pass(48 * time.Hour)
		f.signIn("admin")
		if err := f.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		for query, want := range map[string]int{`select count(*) from links`: 0, `select count(*) from sign_ins`: 1} {
			var n int
			if err := f.db.QueryRow(t.Context(), query).Scan(&n); err != nil || n != want {
				t.Errorf("%s: %d, %v", query, n, err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := f.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}
