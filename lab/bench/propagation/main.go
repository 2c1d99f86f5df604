// Command propagation measures how long a change of the lease table takes to reach the
// last of many lookups. It compares that with etcd's watch with as many watchers and
// bytes, and with a bare gRPC server that pushes as many bytes.
//
//	cd lab/bench && go run ./propagation          all sizes, some minutes
//	cd lab/bench && go run ./propagation -quick   1,000 listeners each, some seconds
//
// Servers and their listeners run in separate processes. All servers have the same
// listener code; see [Listeners].
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

const about = "The time from a change of the lease table to the last of many lookups. A change grants 64 ranges to an owner. Peers are etcd's\n" +
	"watch of a key with a value of the same size, and a gRPC server that sends as many bytes from a goroutine per listener. Time\n" +
	"starts when the manager hands the change to its store, when the put is sent, and when the push starts; it ends when the last\n" +
	"listener has the message. A manager's wait of a quarter of a second for more changes is excluded. There is no disk: the manager's\n" +
	"store is in memory, etcd is one member without fsync. Listeners run the same code in separate processes, without compression, on\n" +
	"one host. Contestants alternate in each round; above 10,000 connections they run one after the other, because of memory."

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

// measureTogether runs the contestants of a group at the same time.
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
	t := report.NewTable("", "listeners", "", "bytes", "median, ms", "last, ms", "low", "high", "times the push")
	for _, s := range all {
		push := byName(found[s])[namePush]
		for _, o := range found[s] {
			t.Add(s, o.name, o.bytes, o.half.Median, o.last, report.PairedRatio(o.turns, push.turns))
		}
	}
	r.Add(report.Section{Title: "From a change to the lookups", Table: t})
	if !r.Quick {
		plotCurves(r, all, found, true, "own", "a connection each")
		plotCurves(r, all, found, false, "shared", fmt.Sprintf("over %d connections", few))
	}
	for _, s := range all {
		judge(r, s, byName(found[s]))
	}
}

// judge adds the headlines of a size, its goals if it has any, and its losses. Goals
// compare turns of the same round; losses compare the medians that are shown.
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
		r.Lose("to etcd's watch, with %v: %v ms against %v until the last listener.", s, ours.last.Median, of[nameEtcd].last.Median)
	}
	if ours.last.Median > of[namePush].last.Median {
		r.Lose("to a bare push, with %v: %v ms against %v. A manager commits a change to its store, in memory here, before it sends it; this share was not measured.",
			s, ours.last.Median, of[namePush].last.Median)
	}
}

func byName(all []outcome) map[string]outcome {
	return report.ByName(all, func(o outcome) string { return o.name })
}

// plotCurves plots the time by number of listeners, for the sizes with a connection per
// listener or for the others.
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
	r.AddPlot(file, fmt.Sprintf("Growth of the time until the last listener received a change, %s. With exponent %s for leasehold, %s for etcd, %s for a bare push.",
		how, report.Number(report.Slope(p.Curves[0].Points)), report.Number(report.Slope(p.Curves[1].Points)), report.Number(report.Slope(p.Curves[2].Points))), p.Write)
}
