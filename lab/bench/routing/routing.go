// Package routing measures the time to find the server of a name: lookup.Find compared with
// libraries for the same purpose.
//
// The libraries do different things for their callers; see the comments of the contestants.
package routing

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

const about = "The cost of finding the server of a key: `lookup.Find` against hash-ring libraries. All have the same servers and names of 20\n" +
	"bytes, in the same order, and return an address. `index` is the lower bound: the same hash and a read of the radix index below\n" +
	"Find, without table. Numbers are nanoseconds per name; with all cores, elapsed time divided by all names.\n" +
	"\n" +
	"`Find` returns the current or a recent lease holder. The libraries return the server that a list implies, without a guarantee."

// New returns the benchmark.
func New() *report.Benchmark {
	return &report.Benchmark{
		Name: "routing", Number: 1, Title: "Routing", About: about,
		Rounds: 10, Quick: 4, Seconds: 30, QuickSeconds: 5,
		Run: run,
	}
}

const (
	turn         = 20 * time.Millisecond
	usualServers = 1000 // of the goals
)

func run(ctx context.Context, r *report.Run) error {
	sizes := []int{100, usualServers, 10_000}
	if r.Quick {
		sizes = []int{usualServers}
	}
	for _, servers := range sizes {
		all, err := measure(ctx, r, servers)
		if err != nil {
			return err
		}
		conclude(r, servers, all)
	}
	return nil
}

// A result is the cost of a router on one core and on all.
type result struct {
	*router
	one, all report.Standing
}

// measure gives all routers turns on one core and on all cores.
func measure(ctx context.Context, r *report.Run, servers int) ([]result, error) {
	var routers []*router
	defer func() {
		for _, x := range routers {
			x.close()
		}
	}()
	var contestants []report.Contestant
	for _, start := range starters() {
		x, err := start(ctx, servers)
		if err != nil {
			return nil, err
		}
		if x == nil {
			continue
		}
		r.Step("%s servers: %s is ready", report.Thousands(float64(servers)), x.name)
		routers = append(routers, x)
		contestants = append(contestants,
			report.Contestant{Name: x.name, Run: func(n int) int { return x.find(0, n) }},
			report.Contestant{Name: x.name, Run: func(n int) int {
				return report.OnAllCores(n, func(core, n int) int { return x.find(core*nameCount/2, n) })
			}})
	}
	standings, err := report.Compete(ctx, contestants, r.Rounds, turn, func(round int) {
		r.Step("%s servers, round %d of %d", report.Thousands(float64(servers)), round+1, r.Rounds)
	})
	var results []result
	for i, x := range routers {
		results = append(results, result{x, standings[2*i], standings[2*i+1]})
	}
	return results, err
}

func conclude(r *report.Run, servers int, all []result) {
	t := report.NewTable("", "ns for each name", "pieces", "one core", "low to high", "all cores", "low to high", "allocations")
	spread := func(s report.Summary) string { return report.Number(s.Low) + " to " + report.Number(s.High) }
	for _, x := range all {
		one, many := x.one.Nanoseconds, x.all.Nanoseconds
		t.Add(x.name, x.pieces, one.Median, spread(one), many.Median, spread(many), x.one.Allocations)
	}
	r.Add(report.Thousands(float64(servers))+" servers", "", t)
	ours := all[0].one.Nanoseconds.Median
	if servers != usualServers {
		best := quickest(all)
		r.Less(fmt.Sprintf("find.%d.one", servers), ours, "ns", best.name, best.one.Nanoseconds.Median)
	} else {
		for _, x := range all[1:] {
			r.Less("find", ours, "ns", x.name, x.one.Nanoseconds.Median)
		}
		goals(r, all)
	}
	losses(r, servers, all)
}

// quickest returns the fastest peer on one core; lower bounds are not peers.
func quickest(all []result) (best result) {
	for _, x := range all[1:] {
		if !x.floor && (best.router == nil || x.one.Nanoseconds.Median < best.one.Nanoseconds.Median) {
			best = x
		}
	}
	return best
}

// goals adds the goals of Find. The ratio to a library is to the one with as many pieces, 64 for
// each server, so that shares are even and a change of servers moves few keys.
func goals(r *report.Run, all []result) {
	named := report.ByName(all, func(x result) string { return x.name })
	ours := all[0].one
	index := report.PairedRatio(ours.Turns, named[nameIndex].one.Turns)
	r.Want("Find at most 1.5 times the index with the same hash", index, "times", index <= 1.5)
	large := report.PairedRatio(named[nameConsistentLarge].one.Turns, ours.Turns)
	r.Want("Find at least 1.5 times as fast as buraksezer/consistent with as many pieces", large, "times", large >= 1.5)
	r.Want("no allocation in Find", ours.Allocations, "", ours.Allocations == 0)
	r.Lose("to the bare index, %v ns against %v: Find also loads the current table, and reads the address of the range's holder, "+
		"another cache miss.", named[nameIndex].one.Nanoseconds.Median, ours.Nanoseconds.Median)
}

// losses adds the measurements in which a library is faster, with the reason.
func losses(r *report.Run, servers int, all []result) {
	add := func(mode string, of func(result) float64) {
		var quicker []string
		for _, x := range all[1:] {
			if !x.floor && of(x) < of(all[0]) {
				quicker = append(quicker, fmt.Sprintf("%s (%s ns against %s)", x.name, report.Number(of(x)), report.Number(of(all[0]))))
			}
		}
		if len(quicker) > 0 {
			r.Lose("%s servers, %s: faster than Find: %s. Fewer pieces fit into a nearer cache; with so few, shares are uneven.",
				report.Thousands(float64(servers)), mode, strings.Join(quicker, ", "))
		}
	}
	add("one core", func(x result) float64 { return x.one.Nanoseconds.Median })
	add("all cores", func(x result) float64 { return x.all.Nanoseconds.Median })
}
