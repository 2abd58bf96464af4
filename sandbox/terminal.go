package sandbox

import "context"

// TerminalSize is the size of a terminal, in characters.
type TerminalSize struct {
	Columns uint16 `json:"columns"`
	Rows    uint16 `json:"rows"`
}

// Validate tells what no terminal can be.
func (s TerminalSize) Validate() error {
	if s.Columns == 0 || s.Rows == 0 || s.Columns > maxSide || s.Rows > maxSide {
		return Invalid("terminal", "must have 1 to 10000 columns and rows")
	}
	return nil
}

const maxSide = 10_000

// Terminal is a [Control] of a command that runs on a terminal. Many may read
// what it shows, and one types at a time: whoever types keeps the keyboard
// until it goes, or ten seconds after the last key. What others type meanwhile is refused
// with the code terminal_busy, of the kind ErrConflict.
type Terminal interface {
	Control
	// Resize needs the keyboard, as typing does.
	Resize(ctx context.Context, size TerminalSize) error
	// Take takes the keyboard from who has it.
	Take(ctx context.Context) error
}
