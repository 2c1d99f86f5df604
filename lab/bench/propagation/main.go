package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
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
	dir, err := os.MkdirTemp("", "bench-propagation-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
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
		steps += len(starters()) + len(heats(s))*s.rounds(r.Rounds)
	}
	r.Expect(steps)
	found := make(map[size][]outcome)
	for _, s := range all {
		if found[s], err = measure(ctx, r, dir, s); err != nil {
			return err
		}
	}
	conclude(r, all, found)
	return nil
}

// measure holds the contest at one size.
func measure(ctx context.Context, r *report.Run, dir string, s size) (all []outcome, err error) {
	bytes := 0
	turns := heats(s)
	for _, starters := range turns {
		found, err := heat(ctx, r, dir, s, starters, bytes, s.limit()/time.Duration(len(turns)))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
		bytes = all[0].bytes
	}
	return all, nil
}

// heat runs the contestants that run at the same time.
func heat(ctx context.Context, r *report.Run, dir string, s size, starters []starter, bytes int, limit time.Duration) ([]outcome, error) {
	contestants, err := start(ctx, dir, s, starters, func(name string) { r.Step("%v: %s has its listeners", s, name) })
	if err != nil {
		return nil, err
	}
	defer endAll(contestants)
	rounds := s.rounds(r.Rounds)
	return contest(ctx, contestants, rounds, bytes, limit, func(round int) { r.Step("%v, round %d of %d", s, round+1, rounds) })
}
