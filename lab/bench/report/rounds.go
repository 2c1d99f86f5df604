package report

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// A Contestant does one operation again and again.
type Contestant struct {
	Name string
	// Run does it n times. The loop is part of it, so that no call through a
	// variable is measured. It returns a number that depends on all results, so
	// that no compiler leaves them out.
	Run func(n int) int
	// Close ends what the contestant started; nil if there is nothing.
	Close func()
}

// CloseAll closes all contestants.
func CloseAll(all []Contestant) {
	for _, c := range all {
		if c.Close != nil {
			c.Close()
		}
	}
}

// A Standing is the cost of an operation of one contestant.
type Standing struct {
	Name        string
	Nanoseconds Summary
	Allocations float64   // the median; less than a thousandth is none
	Turns       []float64 // nanoseconds, by round
}

// Compete gives each contestant a turn of about that length in each round. They have
// equal time, not equal numbers of operations. After each round it calls step, if
// that is not nil.
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

// Rounds calls turn for each of n contestants in each round, and begins with another
// one each time, so that none always follows the same neighbour. After each round it
// calls step, if that is not nil. It ends with the first error, or when ctx does.
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

// calibrate returns how many operations c does in a turn, and warms it up.
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

// measure returns the cost of one of n operations, in nanoseconds and allocations. A
// connection in the background may allocate now and then: less than one allocation
// in a thousand operations is not counted.
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

// OnAllCores divides n among as many goroutines as there are cores. Each gets its
// number, from 0, and its share.
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
