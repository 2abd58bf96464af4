package history

import (
	"context"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Broken returns a store in the place of one that could not be opened: every
// call is refused with err, so that whoever records says why and stays up.
func Broken(err error) Store { return broken{err} }

type broken struct{ err error }

func (b broken) Begin(context.Context, *Operation) error               { return b.err }
func (b broken) Append(context.Context, string, []sandbox.Chunk) error { return b.err }
func (b broken) Finish(context.Context, string, *End) error            { return b.err }
func (b broken) Import(context.Context, *Operation) error              { return b.err }
func (b broken) Get(context.Context, string) (*Operation, error)       { return nil, b.err }
func (b broken) List(context.Context, *Filter) (*Page, error)          { return nil, b.err }
func (b broken) Changes(context.Context, *ChangeQuery) (*Feed, error)  { return nil, b.err }
func (b broken) Config(context.Context) (*StoredConfig, error)         { return nil, b.err }
func (b broken) Close() error                                          { return nil }

func (b broken) SetConfig(context.Context, *ConfigChange) (*StoredConfig, error) {
	return nil, b.err
}

func (b broken) Output(context.Context, string, sandbox.Stream, int64, int64) ([]byte, error) {
	return nil, b.err
}
