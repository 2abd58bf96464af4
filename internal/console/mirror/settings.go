package mirror

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/glassboxhq/glassbox/internal/db"
	"github.com/glassboxhq/glassbox/sandbox"
)

// CodeSettingsChanged tells that somebody else has changed the settings.
const CodeSettingsChanged sandbox.Code = "settings_changed"

// Settings are the limits that admins have set.
type Settings struct {
	Limits
	Revision  int64     // counts the changes; 0: they are as they came
	UpdatedAt time.Time // zero: never
}

// defaultLimits hold until somebody sets others.
var defaultLimits = Limits{Age: 365 * 24 * time.Hour, BodyAge: 90 * 24 * time.Hour, Bytes: 20 << 30}

const settingsKey = "mirror"

// Settings returns the limits that are in force.
func (m *Mirror) Settings(ctx context.Context) (*Settings, error) {
	s := &Settings{Limits: defaultLimits}
	var text string
	var updated db.Time
	err := m.db.QueryRow(ctx, `select value, revision, updated_at from settings where key = ?`, settingsKey).Scan(&text, &s.Revision, &updated)
	if errors.Is(err, sql.ErrNoRows) {
		return s, nil
	}
	if err == nil {
		s.Limits, s.UpdatedAt = Limits{}, updated.Time
		err = json.Unmarshal([]byte(text), &s.Limits)
	}
	return s, err
}

// Set sets the limits if they still have a revision; -1: whichever. They are
// kept to at the next clean-up.
func (m *Mirror) Set(ctx context.Context, revision int64, limits *Limits) (*Settings, error) {
	if err := limits.validate(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(limits)
	if err != nil {
		return nil, err
	}
	var n int64
	err = m.tx(ctx, func(tx *db.Tx) error {
		if n, err = tx.Exec(ctx, `update settings set value = ?, revision = revision + 1, updated_at = ? where key = ? and (revision = ? or ? < 0)`,
			string(text), m.now(), settingsKey, revision, revision); err != nil || n > 0 || revision > 0 {
			return err
		}
		n, err = tx.Exec(ctx, `insert into settings (key, value, revision, updated_at) values (?, ?, 1, ?) on conflict (key) do nothing`,
			settingsKey, string(text), m.now())
		return err
	})
	if err == nil && n == 0 {
		err = &sandbox.Error{Op: "set limits of the mirror", Code: CodeSettingsChanged, Message: "somebody else has changed them; read them again"}
	}
	if err != nil {
		return nil, err
	}
	return m.Settings(ctx)
}

// Limits returns the limits that are in force.
func (m *Mirror) Limits(ctx context.Context) (*Limits, error) {
	s, err := m.Settings(ctx)
	if err != nil {
		return nil, err
	}
	return &s.Limits, nil
}

func (l *Limits) validate() error {
	if l.Age < 0 || l.BodyAge < 0 || l.Bytes < 0 {
		return sandbox.Invalid("limits", "must not be negative; 0 does not limit")
	}
	for _, own := range l.ByConnection {
		if len(own.ByConnection) > 0 {
			return sandbox.Invalid("limits", "of a connection hold none of others")
		}
		if err := own.validate(); err != nil {
			return err
		}
	}
	return nil
}
