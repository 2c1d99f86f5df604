package report

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"
)

// A Contestant is an operation to measure.
type Contestant struct {
	Name string
	// Run executes the operation n times. It contains the loop, so that no indirect call is
	// measured. It returns a number that depends on all results, so that the compiler cannot
	// omit them.
	Run func(n int) int
}

// A Standing is the measured cost of a contestant.
type Standing struct {
	Name        string
	Nanoseconds Summary
	Allocations float64   // the median, rounded to thousandths
	Turns       []float64 // nanoseconds, by round
}

// Compete gives each contestant a turn of about the given length in each round: equal time, not
// equal numbers of operations. After each round it calls step, if that is not nil.
func Compete(ctx context.Context, all []Contestant, rounds int, turn time.Duration, step func(round int)) ([]Standing, error) {
	counts := make([]int, len(all))
	for i, c := range all {
		counts[i] = calibrate(c, turn)
	}
	standings := make([]Standing, len(all))
	allocations := make([][]float64, len(all))
	err := Rounds(ctx, rounds, len(all), func(round, i int) error {
		nanoseconds, allocated := measure(all[i], counts[i])
		standings[i].Turns = append(standings[i].Turns, nanoseconds)
		allocations[i] = append(allocations[i], allocated)
		return nil
	}, step)
	for i, c := range all {
		standings[i].Name = c.Name
		standings[i].Nanoseconds = Summarise(standings[i].Turns)
		standings[i].Allocations = Median(allocations[i])
	}
	return standings, err
}

// Rounds calls turn for each of n contestants in each round, starting with another one each
// time. After each round it calls step, if that is not nil. It ends with the first error, or
// when ctx ends.
func Rounds(ctx context.Context, rounds, n int, turn func(round, contestant int) error, step func(round int)) error {
	for round := range rounds {
		for i := range n {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := turn(round, (round+i)%n); err != nil {
				return err
			}
		}
		if step != nil {
			step(round)
		}
	}
	return nil
}

// calibrate returns the number of operations of c in a turn, and warms it up.
func calibrate(c Contestant, turn time.Duration) int {
	n := 1
	for {
		start := time.Now()
		c.Run(n)
		elapsed := time.Since(start)
		if elapsed >= turn/2 || n >= 1<<30 {
			return max(1, int(float64(n)*float64(turn)/float64(max(elapsed, 1))))
		}
		n *= 2
	}
}

// measure returns the cost of an operation, in nanoseconds and allocations. Less than one
// allocation in a thousand operations, from background work, is not counted.
func measure(c Contestant, n int) (nanoseconds, allocations float64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	c.Run(n)
	elapsed := time.Since(start)
	runtime.ReadMemStats(&after)
	allocations = float64((after.Mallocs-before.Mallocs)*1000/uint64(n)) / 1000
	return float64(elapsed.Nanoseconds()) / float64(n), allocations
}

// OnAllCores divides n among one goroutine per core. Each receives its number, from 0, and its
// share.
func OnAllCores(n int, work func(core, n int) int) int {
	cores := runtime.GOMAXPROCS(0)
	sums := make([]int, cores)
	var group sync.WaitGroup
	for i := range cores {
		group.Go(func() { sums[i] = work(i, (n+i)/cores) })
	}
	group.Wait()
	sum := 0
	for _, s := range sums {
		sum += s
	}
	return sum
}

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

// Slope returns the exponent k of the best fit y = c x^k, by linear regression of logarithms.
// Points that have no logarithm are ignored; with fewer than two different x it is NaN.
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
