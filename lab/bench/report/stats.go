package report

import (
	"cmp"
	"math"
	"slices"
)

// A Summary is the result of several turns.
type Summary struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Turns  int     `json:"turns"`
}

// Summarise returns the summary of values; of none, zeros.
func Summarise(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Summary{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Low: sorted[0], High: sorted[n-1], Turns: n}
}

// SummariseOf returns the summary of one number of each element.
func SummariseOf[T any](all []T, of func(T) float64) Summary {
	values := make([]float64, len(all))
	for i, x := range all {
		values[i] = of(x)
	}
	return Summarise(values)
}

// Median returns the middle of values in any order; of none, 0.
func Median(values []float64) float64 { return Summarise(values).Median }

// Quantile returns the value below which a share of sorted values are; of none, 0.
func Quantile[T cmp.Ordered](sorted []T, share float64) (at T) {
	if len(sorted) == 0 {
		return at
	}
	return sorted[int(share*float64(len(sorted)-1))]
}

// PairedRatio returns the median of a[i]/b[i]. Turns of the same round met the
// same machine: a slow minute then changes both, and not their ratio.
func PairedRatio(a, b []float64) float64 {
	var ratios []float64
	for i, x := range a[:min(len(a), len(b))] {
		if y := b[i]; y != 0 {
			ratios = append(ratios, x/y)
		}
	}
	return Median(ratios)
}

// Slope returns the exponent k of the power law y = c x^k that fits best: the
// slope of the line through the points on logarithmic axes. Points that have no
// logarithm are left out; with fewer than two different x it is NaN.
func Slope(points []Point) float64 {
	var n, sumX, sumY, sumXX, sumXY float64
	for _, p := range points {
		if p.X <= 0 || p.Y <= 0 {
			continue
		}
		x, y := math.Log(p.X), math.Log(p.Y)
		n, sumX, sumY, sumXX, sumXY = n+1, sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	spread := n*sumXX - sumX*sumX
	if n < 2 || spread < 1e-12 {
		return math.NaN()
	}
	return (n*sumXY - sumX*sumY) / spread
}
