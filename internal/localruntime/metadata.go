package localruntime

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/glassboxhq/glassbox/sandbox"
)

// SetMetadata sets the named entries of a sandbox's metadata, removes those
// that are nil, and leaves the others. It works in every state that is known.
func (rt *Runtime) SetMetadata(ctx context.Context, id string, change map[string]*string) (*sandbox.Info, error) {
	b, err := rt.find(ctx, id)
	if err != nil {
		return nil, err
	}
	set := map[string]string{}
	for key, value := range change {
		set[key] = ""
		if value != nil {
			set[key] = *value
		}
	}
	if err := ValidateMetadata(set); err != nil {
		return nil, err
	}
	b.op.Lock()
	defer b.op.Unlock()
	if _, err := rt.find(ctx, id); err != nil { // it may have gone meanwhile
		return nil, err
	}
	if state, _ := b.state(); state == sandbox.Unknown { // its record must not be written over
		return nil, &sandbox.Error{Op: "set metadata", Sandbox: id, Code: sandbox.CodeSandboxState, Message: "the sandbox is unknown: " + b.record().Info.Message}
	}
	next := merged(b.record().Info.Metadata, change)
	if len(next) > maxMetadata {
		return nil, tooMuchMetadata()
	}
	err = b.change(func(r *record) {
		r.Info.Metadata = next
		r.happened(rt.now(), "METADATA_CHANGED", strings.Join(slices.Sorted(maps.Keys(change)), ", "))
	})
	return b.info(), err
}

// merged returns the metadata after a change, as RFC 7396 says it.
func merged(metadata map[string]string, change map[string]*string) map[string]string {
	next := maps.Clone(metadata)
	if next == nil {
		next = map[string]string{}
	}
	for key, value := range change {
		if value == nil {
			delete(next, key)
		} else {
			next[key] = *value
		}
	}
	return next
}
