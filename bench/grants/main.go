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

const whatItAsks = "How many owners can join, and how many leases can be granted, in a second? With leasehold, 1,000 owners join at the same time and are\n" +
	"granted a range each; and 256 owners join and are granted 4,096 ranges. Time begins when the first asks to join, and ends when the last range\n" +
	"is granted: the quarter of a second for which a manager waits for others, so as to make one change of many, is in it. Beside it are what one\n" +
	"can use instead, each with 256 clients that acquire one after the other: a lease of etcd with a key that is put if it is absent; such a key\n" +
	"under one lease per client; a mutex of etcd's library; an ephemeral node of ZooKeeper. Everyone keeps what is granted in three processes, on\n" +
	"disk: the manager's store is a cluster of etcd like the one beside it. Giving back is not measured. All of it is on one computer."

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
