// Package propagation measures how long a change of the lease table takes to reach the
// last of many lookups. It compares that with etcd's watch with as many watchers and
// bytes.
//
// Servers and their listeners run in separate processes. All servers have the same
// listener code; see [Listeners].
package propagation

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

const about = "The time from a change of the lease table to the last of many lookups. A change grants 64 ranges to an owner. The peer is etcd's\n" +
	"watch of a key with a value of the same size. Time starts when the manager hands the change to its store, and when the put is sent;\n" +
	"it ends when the last listener has the message. A manager's wait of a quarter of a second for more changes is excluded. There is no\n" +
	"disk: the manager's store is in memory, etcd is one member without fsync. Listeners run the same code in separate processes, without\n" +
	"compression, on one host. Contestants alternate in each round."

// New returns the benchmark.
func New() *report.Benchmark {
	return &report.Benchmark{
		Name: "propagation", Number: 4, Title: "Propagation", About: about,
		Rounds: 15, Quick: 5, Seconds: 120, QuickSeconds: 10, Run: run,
	}
}

func run(ctx context.Context, r *report.Run) error {
	sizes := []size{{100, 100}, {1_000, 1_000}, {10_000, 10_000}, {1_000, few}, {10_000, few}}
	if r.Quick {
		sizes = []size{{1_000, 1_000}, {1_000, few}}
	}
	t := report.NewTable("", "listeners", "", "bytes", "median, ms", "last, ms", "low", "high", "times etcd")
	for _, s := range sizes {
		all, err := measure(ctx, r, s)
		if err != nil {
			return err
		}
		for _, o := range all {
			t.Add(s, o.name, o.bytes, report.Median(o.halves), o.last(), report.PairedRatio(o.turns, all[1].turns))
		}
		judge(r, s, all[0], all[1])
	}
	r.Add("From a change to the lookups", "", t)
	return nil
}

// measure runs all contestants at the same time, and gives them turns.
func measure(ctx context.Context, r *report.Run, s size) ([]outcome, error) {
	var contestants []*contestant
	for _, e := range starters() {
		c, err := startContestant(ctx, r.Dir, s, e)
		if err != nil {
			return nil, err
		}
		defer c.end()
		contestants = append(contestants, c)
		r.Step("%v: %s has its listeners", s, e.name)
	}
	return contest(ctx, contestants, r.Rounds, func(round int) { r.Step("%v, round %d of %d", s, round+1, r.Rounds) })
}

// judge adds the headline of a size, its goal if it has one, and the loss. The goal compares turns
// of the same round; the loss compares the medians that are shown.
func judge(r *report.Run, s size, ours, etcd outcome) {
	name := fmt.Sprintf("last-of-%d", s.listeners)
	if !s.own() {
		name += fmt.Sprintf("-over-%d", s.conns)
	}
	r.Less(name, ours.last().Median, "ms", nameEtcd, etcd.last().Median)
	if s.own() && (s.listeners == 10_000 || r.Quick) {
		ratio := report.PairedRatio(ours.turns, etcd.turns)
		r.Want(fmt.Sprintf("%v: faster than etcd's watch", s), ratio, "times", ratio < 1)
	}
	if ours.last().Median > etcd.last().Median {
		r.Lose("to etcd's watch, with %v: %v ms against %v until the last listener.", s, ours.last().Median, etcd.last().Median)
	}
}
