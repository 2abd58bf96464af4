package wire

import (
	"net/http"
	"net/url"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Actor is who acts and through which door, as headers carry it. The values
// are percent-encoded UTF-8: proxies on the way refuse other bytes.
type Actor struct {
	Type, ID, Thread, Run, Correlation, TraceParent, Source string
}

func (a *Actor) fields() []struct {
	header string
	value  *string
} {
	return []struct {
		header string
		value  *string
	}{
		{HeaderAgent, &a.Type}, {HeaderAgentID, &a.ID}, {HeaderThread, &a.Thread}, {HeaderRun, &a.Run},
		{HeaderCorr, &a.Correlation}, {HeaderTrace, &a.TraceParent}, {HeaderSource, &a.Source},
	}
}

// Set writes the actor into headers.
func (a *Actor) Set(h http.Header) {
	for _, f := range a.fields() {
		if *f.value != "" {
			h.Set(f.header, url.PathEscape(*f.value))
		}
	}
}

// ReadActor reads the actor from headers, decoding once.
func ReadActor(h http.Header) (*Actor, error) {
	a := &Actor{}
	for _, f := range a.fields() {
		value, err := url.PathUnescape(h.Get(f.header))
		if err != nil {
			return nil, sandbox.Invalid(f.header, "must be percent-encoded UTF-8")
		}
		*f.value = value
	}
	return a, nil
}
