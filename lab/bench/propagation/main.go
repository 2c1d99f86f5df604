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

const about = "How long does a change of the lease table take to reach the last of many lookups? A change grants 64 ranges to an owner at once. It is\n" +
	"compared with etcd's watch of one key, with as many bytes in a message, and with a gRPC server that sends as many bytes to all listeners,\n" +
	"from one goroutine for each, and does nothing else. Time is measured from when the manager passes the change to its store, the put is sent, or\n" +
	"the push begins, until the last listener has received the message. It excludes the quarter of a second for which a manager waits for other\n" +
	"owners before it makes a change, and disks: the manager's store is in memory, and etcd is one member without fsync. All servers have the same\n" +
	"listener code in separate processes, and as many listeners over as many connections, without compression. Everything runs on one computer.\n" +
	"Contestants alternate in each round, except with more than 10,000 connections: memory does not suffice for those of all three, so each\n" +
	"contestant takes all its turns before the next one starts."

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
	t := report.NewTable("", "listeners", "", "bytes", "half of them, ms", "the last, ms", "low", "high", "times the push")
	for _, s := range all {
		push := byName(found[s])[namePush]
		for _, o := range found[s] {
			t.Add(s, o.name, o.bytes, o.half.Median, o.last, report.PairedRatio(o.turns, push.turns))
		}
	}
	r.Add(report.Section{Title: "From a change to its listeners", Table: t})
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
		r.Lose("to etcd's watch, with %v: %v ms against %v until the last listener received a change.", s, ours.last.Median, of[nameEtcd].last.Median)
	}
	if ours.last.Median > of[namePush].last.Median {
		r.Lose("to a bare push, with %v: %v ms against %v. A manager's change goes through its store, in memory here, before it is sent; which part of the difference that is was not measured.",
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
