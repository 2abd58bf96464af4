package db

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// Time is a moment as the tables hold it: microseconds since 1970, or null for
// the zero time.
type Time struct{ time.Time }

// At is t as a Time.
func At(t time.Time) Time { return Time{t} }

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) {
	if t.IsZero() {
		return nil, nil
	}
	return t.UnixMicro(), nil
}

// Scan implements sql.Scanner.
func (t *Time) Scan(from any) error {
	switch v := from.(type) {
	case nil:
		t.Time = time.Time{}
	case int64:
		t.Time = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time cannot be read from %T", from)
	}
	return nil
}
