package report

import (
	"math/rand/v2"
	"slices"
)

// draws is how often the bootstrap draws.
const draws = 2000

// Median returns the median of samples, and 0 of none. It sorts them.
func Median(samples []float64) float64 {
	n := len(samples)
	if n == 0 {
		return 0
	}
	slices.Sort(samples)
	if n%2 == 1 {
		return samples[n/2]
	}
	return (samples[n/2-1] + samples[n/2]) / 2
}

// Rounds are the samples of one arm, by the round they were taken in.
type Rounds [][]float64

// All returns the samples of all rounds.
func (r Rounds) All() []float64 { return slices.Concat(r...) }

// Compare returns the ratio of the medians of two arms that took turns, with
// its 95 % interval. A draw takes as many rounds as there were, with
// replacement, and of each round what both arms did in it: samples of one
// round are not independent, rounds nearly are.
func Compare(a, b Rounds, rng *rand.Rand) *Interval {
	ratios := make([]float64, draws)
	var as, bs []float64
	for i := range ratios {
		as, bs = as[:0], bs[:0]
		for range a {
			n := rng.IntN(len(a))
			as, bs = append(as, a[n]...), append(bs, b[n]...)
		}
		ratios[i] = Median(as) / Median(bs)
	}
	slices.Sort(ratios)
	return &Interval{
		Value: Median(a.All()) / Median(b.All()),
		Low:   ratios[draws*25/1000], High: ratios[draws*975/1000-1],
	}
}
