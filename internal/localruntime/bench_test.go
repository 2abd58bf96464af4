package localruntime_test

import (
	"log/slog"
	"testing"
)

// BenchmarkCreate is the time from the call to the recorder's answer.
func BenchmarkCreate(b *testing.B) {
	opts := options(b, b.TempDir())
	opts.Logger = slog.New(slog.DiscardHandler)
	rt := startRuntime(b, opts)
	for b.Loop() {
		info, err := rt.Create(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := rt.Delete(b.Context(), info.ID); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkDelete is the time that it takes to end a sandbox in which nothing
// runs.
func BenchmarkDelete(b *testing.B) {
	opts := options(b, b.TempDir())
	opts.Logger = slog.New(slog.DiscardHandler)
	rt := startRuntime(b, opts)
	for b.Loop() {
		b.StopTimer()
		info := create(b, rt, nil)
		run(b, rt, info.ID, "true")
		b.StartTimer()
		if err := rt.Delete(b.Context(), info.ID); err != nil {
			b.Fatal(err)
		}
	}
}
