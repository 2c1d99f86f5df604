// Command routing measures the time to find the server of a request: lookup.Find
// compared with libraries for the same purpose.
//
//	cd lab/bench/routing && go run .          all sizes, some minutes
//	cd lab/bench/routing && go run . -quick   1,000 servers only, some seconds
//
// The libraries do different things for their callers; see the comments of the
// contestants.
//
// It is a separate module because dskit does not build with the etcd client of the other
// benchmarks. Without dskit, as in make bench-quick, it builds in half the time:
//
//	cd lab/bench/routing && go run -tags nodskit . -quick
package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

const about = "The cost of finding the server of a key: `lookup.Find` against hash-ring libraries. All have the same servers and names of 20\n" +
	"bytes, in the same order, and return an address. `index, key given` is the lower bound: a read of the radix index below Find,\n" +
	"without hash and table. Numbers are nanoseconds per name; with all cores, elapsed time divided by all names. \"Changing\": a server\n" +
	"leaves and returns 100 times a second; for Find an update that moves its 64 ranges, for the libraries a removed and an added\n" +
	"member. The changing goroutine uses part of a core.\n" +
	"\n" +
	"`Find` returns the current or a recent lease holder. The libraries return the server that a list implies, without a guarantee."

func main() {
	report.Main(report.Benchmark{
		Name: "routing", Number: 1, Title: "Routing", About: about, Module: true, Rounds: 5, Quick: 2,
		Modules: []string{
			"github.com/buraksezer/consistent", "github.com/stathat/consistent", "github.com/serialx/hashring",
			"github.com/dgryski/go-rendezvous", "github.com/lafikl/consistent", "github.com/grafana/dskit",
		},
		Run: run,
	})
}

// sizes are the numbers of servers.
func sizes(quick bool) []int {
	if quick {
		return []int{usualServers}
	}
	return []int{100, usualServers, 10_000}
}

const usualServers = 1000

// A turn's length, enough for ten changes in the mode with changes.
const (
	quietTurn    = 20 * time.Millisecond
	changingTurn = 100 * time.Millisecond
)

func run(ctx context.Context, r *report.Run) error {
	steps := 0
	for _, servers := range sizes(r.Quick) {
		steps += len(starters()) + r.Rounds*servers/100 // larger sizes take longer
	}
	r.Expect(steps)
	all := make(map[int][]*router)
	for _, servers := range sizes(r.Quick) {
		routers, err := contest(ctx, r, servers)
		if err != nil {
			return err
		}
		all[servers] = routers
	}
	conclude(r, all)
	return nil
}

// contest gives all routers turns in all modes, with the given number of servers.
func contest(ctx context.Context, r *report.Run, servers int) ([]*router, error) {
	routers, err := startAll(ctx, r, servers)
	defer func() {
		for _, c := range routers {
			c.close()
		}
	}()
	if err != nil {
		return nil, err
	}
	err = report.Rounds(ctx, r.Rounds, len(routers), func(_, i int) error {
		for _, m := range modes() {
			if err := routers[i].turn(m); err != nil {
				return fmt.Errorf("%s: %w", routers[i].name, err)
			}
		}
		return nil
	}, func(round int) {
		for range servers / 100 {
			r.Step("%s servers, round %d of %d", report.Thousands(float64(servers)), round+1, r.Rounds)
		}
	})
	return routers, err
}

// startAll starts all routers, a few at a time, since some rings take minutes to build.
// Nothing is measured meanwhile. Routers that fail to start are skipped, except Leasehold.
func startAll(ctx context.Context, r *report.Run, servers int) ([]*router, error) {
	all := starters()
	routers, failures := make([]*router, len(all)), make([]error, len(all))
	started := make(chan struct{})
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	go func() {
		for i, start := range all {
			group.Go(func() error {
				routers[i], failures[i] = start(ctx, servers)
				started <- struct{}{}
				return nil
			})
		}
	}()
	for range all {
		<-started
		r.Step("%s servers: starting", report.Thousands(float64(servers)))
	}
	var there []*router
	for i, c := range routers {
		switch err := failures[i]; {
		case err == nil:
			there = append(there, c)
		case i > 0:
			r.Skip(fmt.Sprintf("%s with %s servers", c.name, report.Thousands(float64(servers))), err)
		}
	}
	return there, failures[0]
}

func conclude(r *report.Run, all map[int][]*router) {
	for _, servers := range sizes(r.Quick) {
		r.Add(report.Section{Title: report.Thousands(float64(servers)) + " servers", Table: compared(all[servers])})
	}
	if !r.Quick {
		for _, m := range []mode{{}, {allCores: true, changing: true}} {
			p := plotOf(m, all)
			r.AddPlot(m.file(), "nanoseconds for each name by number of servers, "+m.String(), p.Write)
		}
	}
	headlines(r, all)
	goals(r, all[usualServers])
	losses(r, all)
}

// compared returns a table with a row for each contestant, and a column for each mode.
func compared(routers []*router) *report.Table {
	t := report.NewTable("", "ns for each name", "pieces")
	for _, m := range modes() {
		t.Header = append(t.Header, m.String(), "low to high")
	}
	t.Header = append(t.Header, "changes/s made", "allocations")
	for _, c := range routers {
		row := []any{c.name, c.pieces}
		for _, m := range modes() {
			s := c.summary(m)
			if s.Turns == 0 {
				row = append(row, "", "")
				continue
			}
			row = append(row, s.Median, report.Number(s.Low)+" to "+report.Number(s.High))
		}
		made := ""
		if c.change != nil {
			made = report.Number(report.Median(c.rates))
		}
		t.Add(append(row, made, report.Median(c.allocations))...)
	}
	return t
}

func plotOf(m mode, all map[int][]*router) *report.Plot {
	p := &report.Plot{
		Title: "A name's server, " + m.String(), X: "servers", Y: "ns for each name", LogX: true, LogY: true, MarkX: true,
	}
	for _, c := range all[usualServers] {
		var points []report.Point
		for _, servers := range sizes(false) {
			if other := named(all[servers], c.name); other != nil && other.summary(m).Turns > 0 {
				points = append(points, report.PointOf(float64(servers), other.summary(m)))
			}
		}
		if len(points) > 0 {
			p.Curves = append(p.Curves, report.Curve{Name: c.name, Points: points})
		}
	}
	return p
}

func named(routers []*router, name string) *router {
	return report.ByName(routers, func(c *router) string { return c.name })[name]
}

// headlines compares Find with every peer at 1,000 servers, and with the fastest peer in
// the other cases.
func headlines(r *report.Run, all map[int][]*router) {
	quiet, busy := mode{}, mode{allCores: true, changing: true}
	usual := all[usualServers]
	ours := usual[0]
	for _, c := range usual[1:] {
		r.Less("find", ours.summary(quiet).Median, "ns", c.name, c.summary(quiet).Median)
	}
	for _, servers := range sizes(r.Quick) {
		for _, m := range []mode{quiet, busy} {
			if servers == usualServers && m == quiet {
				continue
			}
			if best := quickest(all[servers], m); best != nil {
				name := fmt.Sprintf("find.%d.%s", servers, m.file())
				r.Less(name, all[servers][0].summary(m).Median, "ns", best.name, best.summary(m).Median)
			}
		}
	}
}

// quickest returns the fastest peer; floors are not peers.
func quickest(routers []*router, m mode) *router {
	var best *router
	for _, c := range routers[1:] {
		if s := c.summary(m); c.floor || s.Turns == 0 {
			continue
		}
		if best == nil || c.summary(m).Median < best.summary(m).Median {
			best = c
		}
	}
	return best
}

// nameRing is the name of dskit's contestant, if the program was built with it.
const nameRing = "grafana/dskit ring.Get"

// goals adds the goals of Find. They compare contestants that divide the key space into
// as many pieces, 64 for each server, so that shares are even and a change of servers
// moves few keys.
func goals(r *report.Run, routers []*router) {
	quiet := mode{}
	ours := routers[0]
	ratio := func(name string) float64 {
		return report.PairedRatio(named(routers, name).turns[quiet], ours.turns[quiet])
	}
	index := report.PairedRatio(ours.turns[quiet], named(routers, nameIndex).turns[quiet])
	r.Want("Find at most 1.5 times the index with the same hash", index, "times", index <= 1.5)
	if named(routers, nameRing) != nil {
		ring := ratio(nameRing)
		r.Want("Find at least 5 times as fast as dskit", ring, "times", ring >= 5)
	}
	large := ratio(nameConsistentLarge)
	r.Want("Find at least 1.5 times as fast as buraksezer/consistent with as many pieces", large, "times", large >= 1.5)
	allocations := report.Median(ours.allocations)
	r.Want("no allocation in Find", allocations, "", allocations == 0)
}

// losses adds the measurements in which a peer is faster, with the reason.
func losses(r *report.Run, all map[int][]*router) {
	for _, servers := range sizes(r.Quick) {
		for _, m := range modes() {
			ours := all[servers][0].summary(m).Median
			var quicker []string
			for _, c := range all[servers][1:] {
				if s := c.summary(m); !c.floor && s.Turns > 0 && s.Median < ours {
					quicker = append(quicker, fmt.Sprintf("%s (%s ns against %s)", c.name, report.Number(s.Median), report.Number(ours)))
				}
			}
			if len(quicker) > 0 {
				r.Lose("%s servers, %s: faster than Find: %s. %s",
					report.Thousands(float64(servers)), m, strings.Join(quicker, ", "), why(m))
			}
		}
	}
	ours := all[usualServers][0].summary(mode{}).Median
	floor := named(all[usualServers], nameBare).summary(mode{}).Median
	r.Lose("to the bare radix read, %s ns against %s: Find hashes the name, loads the current table, "+
		"and reads the address of the range's holder, another cache miss.", report.Number(floor), report.Number(ours))
}

func why(m mode) string {
	if m.changing {
		return "Each update is applied to a table and indexed completely before it is published, which takes CPU from callers " +
			"and grows with the number of ranges."
	}
	return "Fewer pieces fit into a nearer cache; with so few, shares are uneven."
}
