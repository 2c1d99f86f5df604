package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/bench/kit"
)

const whatItAsks = "How many owners can join, and how many leases can be granted, in a second? Who is compared does as much, as far as that can be:\n" +
	"\n" +
	"- An owner per lease: 256 clients over 4 connections to the manager each let an owner join that nobody has heard of, wait until it is granted its\n" +
	"  range, and go on with the next; owners stay and renew. Beside it, 256 clients over 4 connections to etcd's leader each have a lease granted\n" +
	"  and put a key under it if it is absent, which nobody keeps alive. On both sides clients are what the protocol takes and no more.\n" +
	"- The same with its connection: 1,000 processes are started at the same time, with the whole library. Each connects, joins and is granted its\n" +
	"  range. Beside it each connects to etcd, begins a session as etcd's library does, and puts its key.\n" +
	"- 256 owners: they connect, join and are granted 4,096 ranges. Beside it are keys of sessions that are there before: put in etcd under one lease\n" +
	"  per client; locked with a mutex of etcd's library; ephemeral nodes of ZooKeeper.\n" +
	"\n" +
	"A turn of a swarm of clients lasts a second; with us it ends when 4,096 have joined, which are all that a namespace can have fixed ranges for.\n" +
	"Everyone keeps what is granted in three processes, on disk: the manager's store is a cluster of etcd like the one beside it. Giving back is not\n" +
	"measured. All of it is on one computer."

func main() {
	cast.Play(roles())
	o := &options{}
	kit.Main(kit.Question{
		Name: "grants", Number: 6, Title: "Grant rate", Asks: whatItAsks, Rounds: 10, Quick: 1,
		Modules: []string{"github.com/go-zookeeper/zk", "go.etcd.io/etcd/server/v3"},
		Flags:   o.flags, Run: o.run,
	})
}

func roles() map[string]cast.Start {
	all := cast.LockServices()
	all["manager"] = startManager
	return all
}

// options are what the command line says besides what all questions know.
type options struct {
	turn  time.Duration
	fsync bool
	dir   string
}

func (o *options) flags(flags *flag.FlagSet) {
	flags.DurationVar(&o.turn, "turn", time.Second, "how long clients of lock services acquire in a turn")
	flags.BoolVar(&o.fsync, "fsync", true, "wait for disks")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "a directory on a disk: a temporary one is made in it")
}

func (o *options) run(ctx context.Context, r *kit.Run) (err error) {
	if o.turn < 10*time.Millisecond || o.turn > time.Minute {
		return errors.New("want turns of 10 ms to 1 min")
	}
	warm := 3
	if r.Quick {
		warm, o.turn = 1, min(o.turn, 300*time.Millisecond)
	}
	dir, err := os.MkdirTemp(o.dir, "bench-grants-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r.Note("starting leasehold, etcd and ZooKeeper")
	a, err := open(ctx, dir, o.fsync, o.turn, r.Skip)
	if err != nil {
		return err
	}
	defer a.close()
	if a.zooKeeper != "" {
		r.Versions = append(r.Versions, "ZooKeeper "+a.zooKeeper)
	}
	r.Expect((warm + r.Rounds) * len(a.all))
	c := &contest{arena: a, run: r}
	if _, err := c.hold(ctx, warm, "warming up"); err != nil {
		return err
	}
	turns, err := c.hold(ctx, r.Rounds, "granting")
	if err != nil {
		return err
	}
	report(r.Result, a.all, turns, o.fsync)
	return nil
}

// A contest lets everyone have a turn in each round.
type contest struct {
	*arena
	run  *kit.Run
	held int // turns so far: names are made of it
}

func (c *contest) hold(ctx context.Context, rounds int, what string) ([][]cast.Turn, error) {
	turns := make([][]cast.Turn, len(c.all))
	err := kit.Rounds(ctx, rounds, len(c.all), func(round, i int) error {
		e := c.all[i]
		c.held++
		t, err := e.Acquire(ctx, e.batch, fmt.Sprintf("t%d", c.held))
		if err == nil {
			err = e.Release(ctx)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		turns[i] = append(turns[i], t)
		c.run.Step("%s, round %d of %d: %s/s %s", what, round+1, rounds, kit.Thousands(t.Rate()), e.name)
		return nil
	})
	return turns, err
}
