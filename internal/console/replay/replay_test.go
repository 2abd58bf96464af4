package replay_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/glassboxhq/glassbox/internal/console/replay"
	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/internal/db/dbtest"
	"github.com/glassboxhq/glassbox/sandbox"
)

func isCode(err error, code sandbox.Code) bool {
	e, ok := errors.AsType[*sandbox.Error](err)
	return ok && e.Code == code
}

func TestLog(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		log := replay.New(d, func() time.Time { return now })
		request := func(key, body string) *replay.Request {
			return &replay.Request{User: "u", Operation: "create", Key: key, Fingerprint: replay.Fingerprint("/x", []byte(body))}
		}
		begin := func(r *replay.Request, want *replay.Reply, code sandbox.Code) {
			t.Helper()
			got, err := log.Begin(ctx, r)
			if diff := cmp.Diff(got, want); diff != "" || code != "" && !isCode(err, code) || code == "" && err != nil {
				t.Errorf("%v %s", err, diff)
			}
		}
		begin(request("a", "1"), nil, "")
		begin(request("a", "1"), nil, replay.CodeInProgress)
		begin(request("a", "2"), nil, replay.CodeReused)
		other := request("a", "2")
		other.User = "v"
		begin(other, nil, "")
		reply := &replay.Reply{Status: 201, Header: map[string]string{"ETag": `"1"`}, Body: []byte("\x00made")}
		if err := log.Finish(ctx, request("a", "1"), reply); err != nil {
			t.Fatal(err)
		}
		begin(request("a", "1"), reply, "")
		begin(request("a", "2"), nil, replay.CodeReused)
		begin(request("b", "1"), nil, "")
		if err := log.Release(ctx, request("b", "1")); err != nil {
			t.Fatal(err)
		}
		begin(request("b", "2"), nil, "")
		now = now.Add(replay.Patience + time.Second)
		begin(request("b", "2"), nil, replay.CodeLost)
		begin(request("a", "1"), reply, "")
		now = now.Add(replay.Kept)
		begin(request("a", "3"), nil, "")
	})
}

// Of many who come at once with one key, one is to do it.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		log := replay.New(d, time.Now)
		var mine atomic.Int32
		var work sync.WaitGroup
		for range 10 {
			work.Go(func() {
				reply, err := log.Begin(t.Context(), &replay.Request{User: "u", Operation: "o", Key: "k", Fingerprint: "f"})
				switch {
				case err == nil && reply == nil:
					mine.Add(1)
				case !isCode(err, replay.CodeInProgress):
					t.Errorf("%+v %v", reply, err)
				}
			})
		}
		work.Wait()
		if mine.Load() != 1 {
			t.Errorf("%d are to do it", mine.Load())
		}
	})
}

func TestValidateKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{"a": true, `"quoted"`: true, "": false, "a b": false, "ключ": false, string(make([]byte, 256)): false} {
		if got := replay.ValidateKey(key) == nil; got != want {
			t.Errorf("%q: %v", key, got)
		}
	}
}
