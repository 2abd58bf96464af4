package sqlite

import (
	"math"
	"strconv"
	"time"

	"github.com/glassboxhq/glassbox/history"
	"github.com/glassboxhq/glassbox/sandbox"
)

// Any column may hold a value of any type: SQLite does not insist, and other
// programs and hostile sandboxes write what they like. One such value must not
// hide a whole history, so rows are read into types that take everything.

// anyText takes a value as text; NULL is not valid.
type anyText struct {
	text  string
	valid bool
}

// Scan implements sql.Scanner.
func (t *anyText) Scan(value any) error {
	*t = anyText{valid: value != nil}
	switch v := value.(type) {
	case string:
		t.text = v
	case []byte:
		t.text = string(v)
	case int64:
		t.text = strconv.FormatInt(v, 10)
	case float64:
		t.text = strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		t.text = strconv.FormatBool(v)
	case time.Time:
		t.text = history.FormatTime(v)
	}
	return nil
}

// anyNumber takes a value as a whole number; what is none is not valid.
type anyNumber struct {
	n     int64
	valid bool
}

// Scan implements sql.Scanner.
func (n *anyNumber) Scan(value any) error {
	*n = anyNumber{}
	switch v := value.(type) {
	case int64:
		*n = anyNumber{v, true}
	case bool:
		n.valid = true
		if v {
			n.n = 1
		}
	case float64:
		if math.Abs(v) < 1<<62 {
			*n = anyNumber{int64(v), true}
		}
	case string:
		n.parse(v)
	case []byte:
		n.parse(string(v))
	}
	return nil
}

func (n *anyNumber) parse(s string) {
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		*n = anyNumber{v, true}
	}
}

func (n *anyNumber) pointer() *int64 {
	if !n.valid {
		return nil
	}
	return &n.n
}

// rowSize is the size that a row of output tells, within reason.
func (n *anyNumber) rowSize() int64 { return min(max(n.n, 0), maxUnpacked) }

// statusOf is a status as the format knows them; any other is not known.
func statusOf(text string) sandbox.Status {
	switch status := sandbox.Status(text); status {
	case sandbox.Started, sandbox.Succeeded, sandbox.Unsuccessful, sandbox.Cancelled, sandbox.TimedOut:
		return status
	}
	return sandbox.Lost
}
