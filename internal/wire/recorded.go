package wire

import "context"

type recordedKey struct{}

// WithRecorded says that the caller records what it asks of the lifecycle API,
// under this id. A service of ours records it in its stead if it does not.
func WithRecorded(ctx context.Context, opID string) context.Context {
	return context.WithValue(ctx, recordedKey{}, opID)
}

// RecordedFrom returns what WithRecorded said; empty: nothing.
func RecordedFrom(ctx context.Context) string {
	opID, _ := ctx.Value(recordedKey{}).(string)
	return opID
}
