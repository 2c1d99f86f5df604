package report

import (
	"cmp"
	"slices"
)

// A Summary is the median and the range of several turns.
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

// ByName finds elements by their name.
func ByName[T any](all []T, name func(T) string) map[string]T {
	named := make(map[string]T, len(all))
	for _, x := range all {
		named[name(x)] = x
	}
	return named
}

// Median returns the middle of values in any order; of none, 0.
func Median(values []float64) float64 { return Summarise(values).Median }

// Quantile returns a quantile of sorted values; of none, 0.
func Quantile[T cmp.Ordered](sorted []T, share float64) (at T) {
	if len(sorted) == 0 {
		return at
	}
	return sorted[int(share*float64(len(sorted)-1))]
}

// PairedRatio returns the median of a[i]/b[i]. A slow period of the machine affects both turns
// of a round, and not their ratio.
func PairedRatio(a, b []float64) float64 {
	var ratios []float64
	for i, x := range a[:min(len(a), len(b))] {
		if y := b[i]; y != 0 {
			ratios = append(ratios, x/y)
		}
	}
	return Median(ratios)
}
