package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummarise(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		want   Summary
	}{
		"none": {nil, Summary{}},
		"one":  {[]float64{7}, Summary{7, 7, 7, 1}},
		"odd":  {[]float64{9, 1, 5}, Summary{5, 1, 9, 3}},
		"even": {[]float64{4, 1, 2, 100}, Summary{3, 1, 100, 4}},
	} {
		if diff := cmp.Diff(c.want, Summarise(c.values)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	values := []float64{3, 1, 2}
	if Median(values); values[0] != 3 {
		t.Error("the caller's values were sorted")
	}
}

// TestPairedRatio: a slow round does not change the ratio.
func TestPairedRatio(t *testing.T) {
	if got := PairedRatio([]float64{2, 20, 200}, []float64{1, 10, 100}); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
	if got := PairedRatio([]float64{2, 6}, []float64{0, 2, 9}); got != 3 {
		t.Errorf("got %v, want 3: nothing is divided by 0", got)
	}
}

func TestQuantile(t *testing.T) {
	sorted := []int{1, 2, 3, 4, 50}
	for share, want := range map[float64]int{0: 1, 0.5: 3, 0.99: 4, 1: 50} {
		if got := Quantile(sorted, share); got != want {
			t.Errorf("%v: got %d, want %d", share, got, want)
		}
	}
	if got := Quantile([]int(nil), 0.5); got != 0 {
		t.Errorf("of none: %d", got)
	}
}
