package server

import (
	"context"

	"github.com/glassboxhq/glassbox/sandbox"
)

// Usage is what a directory holds, all in all.
type Usage struct {
	Files       int   `json:"files" doc:"and links, and what else is no directory"`
	Directories int   `json:"directories" doc:"below it"`
	Bytes       int64 `json:"bytes"`
	Truncated   bool  `json:"truncated" doc:"there is more: it was counted up to 100 000"`
	Skipped     int   `json:"skipped,omitempty" doc:"directories that could not be read"`
}

// usage counts what would go with a directory.
func usage(ctx context.Context, box *inside, in *FileQuery) (*struct{ Body Usage }, error) {
	name, err := in.name()
	if err != nil {
		return nil, err
	}
	box.about(name)
	found, err := box.Glob(ctx, &sandbox.GlobQuery{Path: name, Pattern: "**/*", Hidden: true, Limit: sandbox.MaxFound})
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Usage }{Usage{Truncated: found.Truncated, Skipped: found.Skipped}}
	for _, f := range found.Files {
		if f.Mode.IsDir() {
			out.Body.Directories++
			continue
		}
		out.Body.Files++
		if f.Mode.IsRegular() {
			out.Body.Bytes += f.Size
		}
	}
	return out, nil
}
