//go:build race

package sqlite_test

// raceEnabled shortens what is slow under the race detector.
const raceEnabled = true
