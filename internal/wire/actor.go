package wire

import (
	"net/http"
	"net/url"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

type actorField struct {
	header string
	value  *string
}

func actorFields(a *history.Actor) []actorField {
	return []actorField{
		{HeaderAgent, &a.Type},
		{HeaderAgentID, &a.ID},
		{HeaderThread, &a.Thread},
		{HeaderRun, &a.Run},
		{HeaderCorr, &a.Correlation},
		{HeaderTrace, &a.TraceParent},
		{HeaderSource, &a.Source},
	}
}

// SetActor writes who acts into headers. The values are percent-encoded UTF-8:
// proxies on the way refuse other bytes.
func SetActor(h http.Header, a history.Actor) {
	for _, f := range actorFields(&a) {
		if *f.value != "" {
			h.Set(f.header, url.PathEscape(*f.value))
		}
	}
}

// ReadActor reads who acts from headers, decoding once.
func ReadActor(h http.Header) (history.Actor, error) {
	var a history.Actor
	for _, f := range actorFields(&a) {
		value, err := url.PathUnescape(h.Get(f.header))
		if err != nil {
			return a, sandbox.Invalid(f.header, "must be percent-encoded UTF-8")
		}
		*f.value = value
	}
	return a, a.Validate()
}
