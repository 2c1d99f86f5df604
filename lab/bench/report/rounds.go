package report

import (
	"context"
	"runtime"
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
// equal numbers of operations. After each turn it calls step.
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
		step(round)
		return nil
	})
	for i, c := range all {
		standings[i].Name = c.Name
		standings[i].Nanoseconds = Summarise(standings[i].Turns)
		standings[i].Allocations = Median(allocations[i])
	}
	return standings, err
}

// Rounds calls turn for each of n contestants in each round, starting with another one each
// time. It ends with the first error, or when ctx ends.
func Rounds(ctx context.Context, rounds, n int, turn func(round, contestant int) error) error {
	for round := range rounds {
		for i := range n {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := turn(round, (round+i)%n); err != nil {
				return err
			}
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
