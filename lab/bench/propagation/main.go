// Command propagation asks how long a change of the lease table takes to reach
// the last of many lookups, beside etcd's watch with as many watchers and bytes,
// and beside a bare gRPC server that pushes as many bytes, written as one would.
//
//	cd lab/bench && go run ./propagation          all of it, in minutes
//	cd lab/bench && go run ./propagation -quick   1,000 of each, in seconds
//
// Servers are processes of their own, and so are their listeners. All listeners are
// the same code, for every server; see [Listeners].
package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

const about = "How long does a change of the lease table take to reach the last of many lookups? A change is 64 ranges that are granted to an owner at\n" +
	"once. Beside it are etcd's watch of a key whose value is put, with as many bytes in a message, and a gRPC server that sends as many bytes to\n" +
	"all who listen, from a goroutine for each, and does nothing else. Time begins when a manager hands the change to its store, when the put is sent, and\n" +
	"when the push begins; it ends when the last has got the message. A manager's wait for other owners before it makes a change, a quarter of a\n" +
	"second, is not in it. No disk is: the manager's store is in memory, and etcd is one member without fsync. Everybody's listeners are the same\n" +
	"code in processes of their own, as many over as many connections, without compression; all of it is on one computer. Contestants alternate in each round, but for more than\n" +
	"10,000 connections: the system has no memory for those of all three, and each has all its turns before the next."

func main() {
	proc.Play(roles())
	var only int
	report.Main(report.Benchmark{
		Name: "propagation", Number: 4, Title: "Propagation", About: about, Rounds: 9, Quick: 5,
		Modules: []string{"go.etcd.io/etcd/server/v3", "google.golang.org/grpc"},
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&only, "listeners", 0, "only with so many lookups, 1000 for one (default all)")
		},
		Run: func(ctx context.Context, r *report.Run) error { return run(ctx, r, only) },
	})
}

func run(ctx context.Context, r *report.Run, only int) (err error) {
	all, short := sizes(r.Quick, files())
	if only > 0 {
		all, short = slices.DeleteFunc(all, func(s size) bool { return s.listeners != only }), false
	}
	if len(all) == 0 {
		return fmt.Errorf("-listeners %d: want 100, 1000, 10000 or 50000", only)
	}
	if short {
		r.Skip("50,000 lookups with a connection each", fmt.Errorf(
			"a process may have only %d files open here (ulimit -Hn); %v took their place", files(), all[len(all)-4]))
	}
	steps := 0
	for _, s := range all {
		steps += len(starters()) + len(concurrentStarters(s))*s.rounds(r.Rounds)
	}
	r.Expect(steps)
	found := make(map[size][]outcome)
	for _, s := range all {
		if found[s], err = measure(ctx, r, s); err != nil {
			return err
		}
	}
	conclude(r, all, found)
	return nil
}

func measure(ctx context.Context, r *report.Run, s size) (all []outcome, err error) {
	bytes := 0
	turns := concurrentStarters(s)
	for _, starters := range turns {
		found, err := measureTogether(ctx, r, s, starters, bytes, s.limit()/time.Duration(len(turns)))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
		bytes = all[0].bytes
	}
	return all, nil
}

// heat runs the contestants that run at the same time.
func measureTogether(ctx context.Context, r *report.Run, s size, starters []starter, bytes int, limit time.Duration) ([]outcome, error) {
	var contestants []*contestant
	for _, e := range starters {
		c, err := startContestant(ctx, r.Dir, s, e)
		if err != nil {
			return nil, err
		}
		defer c.end()
		contestants = append(contestants, c)
		r.Step("%v: %s has its listeners", s, e.name)
	}
	rounds := s.rounds(r.Rounds)
	return contest(ctx, contestants, rounds, bytes, limit, func(round int) { r.Step("%v, round %d of %d", s, round+1, rounds) })
}

func conclude(r *report.Run, all []size, found map[size][]outcome) {
	t := report.NewTable("", "listeners", "", "bytes", "half of them, ms", "the last, ms", "low", "high", "times the push")
	for _, s := range all {
		push := byName(found[s])[namePush]
		for _, o := range found[s] {
			t.Add(s, o.name, o.bytes, o.half.Median, o.last, report.PairedRatio(o.turns, push.turns))
		}
	}
	r.Add(report.Section{Title: "From a change to those who hear of it", Table: t})
	if !r.Quick {
		plotCurves(r, all, found, true, "own", "a connection each")
		plotCurves(r, all, found, false, "shared", fmt.Sprintf("over %d connections", few))
	}
	for _, s := range all {
		judge(r, s, byName(found[s]))
	}
}

// judge adds the headlines of a size, its goals if it has some, and its losses. Goals are about rounds, in which
// both have a turn; losses are about the medians that are told.
func judge(r *report.Run, s size, of map[string]outcome) {
	ours := of[nameLeasehold]
	name := fmt.Sprintf("last-of-%d-over-%d", s.listeners, s.conns)
	if s.own() {
		name = fmt.Sprintf("last-of-%d", s.listeners)
	}
	for _, peer := range []string{nameEtcd, namePush} {
		r.Less(name, ours.last.Median, "ms", peer, of[peer].last.Median)
	}
	push, etcd := report.PairedRatio(ours.turns, of[namePush].turns), report.PairedRatio(ours.turns, of[nameEtcd].turns)
	if s.judged() || s.own() && r.Quick {
		r.Want(fmt.Sprintf("%v: at most twice the time of a bare push", s), push, "times", push <= 2)
		r.Want(fmt.Sprintf("%v: faster than etcd's watch", s), etcd, "times", etcd < 1)
	}
	if ours.last.Median > of[nameEtcd].last.Median {
		r.Lose("to etcd's watch, with %v: %v ms against %v until the last has heard.", s, ours.last.Median, of[nameEtcd].last.Median)
	}
	if ours.last.Median > of[namePush].last.Median {
		r.Lose("to a bare push, with %v: %v ms against %v. A manager's change goes through its store, in memory here, before it is sent; which part of the difference that is was not measured.",
			s, ours.last.Median, of[namePush].last.Median)
	}
}

func byName(all []outcome) map[string]outcome {
	return report.ByName(all, func(o outcome) string { return o.name })
}

// plotCurves draws how the time grows, for those with a connection each or for the
// others.
func plotCurves(r *report.Run, all []size, found map[size][]outcome, own bool, file, how string) {
	p := &report.Plot{Title: "Until the last has heard of a change, " + how, X: "listeners", Y: "ms", LogX: true, LogY: true, MarkX: true}
	for i, name := range []string{nameLeasehold, nameEtcd, namePush} {
		p.Curves = append(p.Curves, report.Curve{Name: name})
		for _, s := range all {
			if s.own() == own {
				p.Curves[i].Points = append(p.Curves[i].Points, report.PointOf(float64(s.listeners), byName(found[s])[name].last))
			}
		}
	}
	r.AddPlot(file, fmt.Sprintf("How the time until the last has heard grows, %s. With exponent %s for leasehold, %s for etcd, %s for a bare push.",
		how, report.Number(report.Slope(p.Curves[0].Points)), report.Number(report.Slope(p.Curves[1].Points)), report.Number(report.Slope(p.Curves[2].Points))), p.Write)
}
