package wire

import (
	"net/url"
	"strconv"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// EncodeFilter writes a filter as the query of PathOps.
func EncodeFilter(f *history.Filter) url.Values {
	q := url.Values{}
	q["type"] = f.Types
	for _, status := range f.Statuses {
		q.Add("status", string(status))
	}
	q["source"] = f.Sources
	for name, value := range map[string]string{
		"actor_type": f.ActorType, "actor": f.ActorID, "thread": f.Thread, "run": f.Run,
		"correlation": f.Correlation, "path": f.Path, "text": f.Text,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, value := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !value.IsZero() {
			q.Set(name, value.UTC().Format(time.RFC3339Nano))
		}
	}
	for name, value := range map[string]int64{"after": f.After, "before": f.Before, "limit": int64(f.Limit)} {
		if value != 0 {
			q.Set(name, strconv.FormatInt(value, 10))
		}
	}
	if f.ExitCode != nil {
		q.Set("exit_code", strconv.Itoa(*f.ExitCode))
	}
	if f.Newest {
		q.Set("newest", "1")
	}
	return q
}

// DecodeFilter reads a filter back.
func DecodeFilter(q url.Values) (*history.Filter, error) {
	f := &history.Filter{
		Types: q["type"], Sources: q["source"], ActorType: q.Get("actor_type"), ActorID: q.Get("actor"),
		Thread: q.Get("thread"), Run: q.Get("run"), Correlation: q.Get("correlation"),
		Path: q.Get("path"), Text: q.Get("text"), Newest: q.Get("newest") == "1",
	}
	for _, status := range q["status"] {
		f.Statuses = append(f.Statuses, sandbox.Status(status))
	}
	for name, to := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if text := q.Get(name); text != "" {
			t, err := time.Parse(time.RFC3339Nano, text)
			if err != nil {
				return nil, sandbox.Invalid(name, "must be a time as in 2026-01-31T12:00:00Z")
			}
			*to = t
		}
	}
	var limit, exit int64
	for name, to := range map[string]*int64{"after": &f.After, "before": &f.Before, "limit": &limit, "exit_code": &exit} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, sandbox.Invalid(name, "must be a whole number")
		}
		*to = n
	}
	f.Limit = int(limit)
	if q.Get("exit_code") != "" {
		code := int(exit)
		f.ExitCode = &code
	}
	return f, nil
}
