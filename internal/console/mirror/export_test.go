package mirror

import "time"

// Fold is fold.
var Fold = fold

// SetSearchTime sets how long a search looks.
func (m *Mirror) SetSearchTime(d time.Duration) { m.opts.SearchTime = d }

// GramsWithin reports whether a text has all grams of a part.
func GramsWithin(part, text string) bool {
	a, b := gramSet{}, gramSet{}
	a.add(fold(part))
	b.add(fold(text))
	for gram := range a {
		if _, ok := b[gram]; !ok {
			return false
		}
	}
	return true
}
