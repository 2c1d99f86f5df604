// Command ratios lets the contestants of package bench take turns, and says
// whether finding a key, checking a lease and changing a value are as fast as we want
// them to be.
//
// Turns are short and many, and everyone has one in each round: on a machine
// that has other work, a slow moment then slows all of them down, and the median
// leaves it out.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/leasehold-dev/leasehold/bench"
)

func main() {
	rounds := flag.Int("rounds", 10, "how many turns each contestant has")
	turn := flag.Duration("turn", 50*time.Millisecond, "about how long a turn is")
	flag.Parse()
	if *rounds < 1 || *turn <= 0 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "ratios: want at least one round, a turn longer than 0, and no arguments")
		os.Exit(2)
	}
	met, err := run(os.Stdout, *rounds, *turn)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
	if !met {
		os.Exit(1)
	}
}

// run holds the contests and reports whether all goals were met.
func run(out io.Writer, rounds int, turn time.Duration) (met bool, err error) {
	found, err := contest(out, fmt.Sprintf("%d servers of 64 ranges", bench.Servers), bench.Contestants, findGoals, rounds, turn)
	if err != nil {
		return false, err
	}
	fmt.Fprintln(out)
	checked, err := contest(out, "an owner of 64 leases", bench.OwnerContestants, checkGoals, rounds, turn)
	if err != nil {
		return false, err
	}
	fmt.Fprintln(out)
	kept, err := contest(out, "a value of 8,000", bench.MapContestants, mapGoals, rounds, turn)
	return found && checked && kept, err
}

// contest holds one contest, in which the first contestant is what the others
// are compared with.
func contest(out io.Writer, title string, start func() ([]bench.Contestant, error), goals []goal, rounds int, turn time.Duration) (met bool, err error) {
	contestants, err := start()
	if err != nil {
		return false, err
	}
	defer func() {
		for _, c := range contestants {
			c.Close()
		}
	}()
	return report(out, title, contestants, goals, compete(contestants, rounds, turn)), nil
}

// A result is what a lookup costs a contestant.
type result struct {
	nanoseconds float64 // the median over all rounds
	best        float64 // far from the median if the machine was busy
	allocations float64 // the median
}

// compete lets everyone have a turn in each round. Contestants do not get equal
// numbers of lookups but equal time.
func compete(contestants []bench.Contestant, rounds int, turn time.Duration) map[string]result {
	lookups := make([]int, len(contestants))
	for i, c := range contestants {
		const trial = 200_000 // also warms up
		perLookup, _ := measure(c, trial)
		lookups[i] = max(1, int(float64(turn.Nanoseconds())/perLookup))
	}
	times := make([][]float64, len(contestants))
	allocations := make([][]float64, len(contestants))
	for range rounds {
		for i, c := range contestants {
			nanoseconds, allocated := measure(c, lookups[i])
			times[i] = append(times[i], nanoseconds)
			allocations[i] = append(allocations[i], allocated)
		}
	}
	results := make(map[string]result)
	for i, c := range contestants {
		slices.Sort(times[i])
		slices.Sort(allocations[i])
		results[c.Name] = result{
			nanoseconds: times[i][rounds/2],
			best:        times[i][0],
			allocations: allocations[i][rounds/2],
		}
	}
	return results
}

// measure returns what one of n lookups takes, in nanoseconds and allocations.
// What runs beside it, a lookup's connection for one, may allocate now and then:
// less than one allocation in a thousand lookups is not counted.
func measure(c bench.Contestant, n int) (nanoseconds, allocations float64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	c.Run(n)
	elapsed := time.Since(start)
	runtime.ReadMemStats(&after)
	allocations = float64((after.Mallocs-before.Mallocs)*1000/uint64(n)) / 1000
	return float64(elapsed.Nanoseconds()) / float64(n), allocations
}

// report writes the results and the goals, and returns whether all were met.
func report(out io.Writer, title string, contestants []bench.Contestant, goals []goal, results map[string]result) (met bool) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tns\tbest round\tallocations\ttimes the first\n", title)
	first := results[contestants[0].Name]
	for _, c := range contestants {
		r := results[c.Name]
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%g\t%.2f\n", c.Name, r.nanoseconds, r.best, r.allocations, r.nanoseconds/first.nanoseconds)
	}
	fmt.Fprintln(w)
	met = true
	for _, g := range goals {
		have, ok := g.check(results)
		verdict := "yes"
		if !ok {
			verdict, met = "NO", false
		}
		fmt.Fprintf(w, "%s\t%.2f\t%s\n", g.want, have, verdict)
	}
	_ = w.Flush() // an error would be that of the terminal
	return met
}
