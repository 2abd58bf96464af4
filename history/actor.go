package history

import (
	"context"

	"github.com/glassboxhq/glassbox/internal/id"
	"github.com/glassboxhq/glassbox/record/redact"
	"github.com/glassboxhq/glassbox/sandbox"
)

// The types of actors.
const (
	Agent  = "agent"
	User   = "user"
	System = "system"
)

// The sources of operations: the door they came through.
const (
	SourceSDK       = "sdk"
	SourceConsole   = "console"
	SourceGateway   = "gateway"
	SourceMCP       = "mcp"
	SourceExecd     = "execd"
	SourceLifecycle = "lifecycle" // the OpenSandbox API, from a client that does not record
	SourceProxy     = "proxy"     // of the local runtime, through which sandboxes connect
)

// Actor is who acts.
type Actor struct {
	Type        string `json:"type"`
	ID          string `json:"id,omitempty"`
	Thread      string `json:"thread_id,omitempty"`
	Run         string `json:"run_id,omitempty"`
	Correlation string `json:"correlation_id,omitempty"`
	TraceParent string `json:"traceparent,omitempty"` // W3C trace context
	Source      string `json:"-"`                     // the door; an operation has it beside its actor
}

// MaxActorField is the longest value of a field of an Actor, in bytes.
const MaxActorField = 256

type actorKey struct{}

// WithActor opens a scope in which actor acts. What actor leaves empty comes
// from the scope around it; outside any, the type is agent and the correlation
// id is a new UUIDv7, shared by all that happens in the scope.
func WithActor(ctx context.Context, actor Actor) context.Context {
	outer, _ := ctx.Value(actorKey{}).(Actor)
	for _, field := range []struct {
		value    *string
		fallback string
	}{
		{&actor.Type, outer.Type},
		{&actor.ID, outer.ID},
		{&actor.Thread, outer.Thread},
		{&actor.Run, outer.Run},
		{&actor.Correlation, outer.Correlation},
		{&actor.TraceParent, outer.TraceParent},
		{&actor.Source, outer.Source},
		{&actor.Type, Agent},
		{&actor.Correlation, id.New()},
	} {
		if *field.value == "" {
			*field.value = field.fallback
		}
	}
	return context.WithValue(ctx, actorKey{}, actor)
}

// ActorFrom returns who acts in ctx: outside any scope the system.
func ActorFrom(ctx context.Context) Actor {
	if actor, ok := ctx.Value(actorKey{}).(Actor); ok {
		return actor
	}
	return Actor{Type: System}
}

// Mask masks secrets in what is told of the actor, and counts them. The type
// and the door are words of a few, which patterns leave alone.
func (a *Actor) Mask(m *redact.Masker) (masked int) {
	for _, field := range []struct {
		value *string
		mask  func(string) (string, int)
	}{
		{&a.Type, m.Word},
		{&a.ID, m.Text},
		{&a.Thread, m.Text},
		{&a.Run, m.Text},
		{&a.Correlation, m.Text},
		{&a.TraceParent, m.Text},
		{&a.Source, m.Word},
	} {
		text, n := field.mask(*field.value)
		*field.value = text
		masked += n
	}
	return masked
}

// Validate tells what of the actor cannot be recorded.
func (a *Actor) Validate() error {
	for _, field := range []struct{ name, value string }{
		{"actor.type", a.Type},
		{"actor.id", a.ID},
		{"actor.thread_id", a.Thread},
		{"actor.run_id", a.Run},
		{"actor.correlation_id", a.Correlation},
		{"actor.traceparent", a.TraceParent},
		{"actor.source", a.Source},
	} {
		if len(field.value) > MaxActorField {
			return sandbox.Invalid(field.name, "must be at most 256 bytes of UTF-8")
		}
		if !printable(field.value) {
			return sandbox.Invalid(field.name, "must be UTF-8 without control characters")
		}
	}
	return nil
}
