package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/bench/kit"
)

func main() {
	cast.Play(roles())
	o := &options{}
	kit.Main(kit.Question{
		Name: "flease", Number: 8, Title: "Flease", Asks: whatItAsks, Rounds: 5, Quick: 1,
		Modules: []string{"github.com/go-zookeeper/zk", "go.etcd.io/etcd/server/v3"},
		Flags:   o.flags, Run: o.run,
	})
}

const whatItAsks = "How many leases can be acquired in a second, without a lock server and with one? [flease.md](flease.md) says how that is " +
	"measured, and has all of it:\nthe figures 3, 4 and 5 of the Flease paper drawn anew. Here is the contest: everyone is three processes on this " +
	"computer, and acquires\nbatches of 10,000 leases."

// options are what the command line says besides what all questions know.
type options struct {
	rounds int
	warm   int
	turn   time.Duration
	only   string
	parts  []string
	dir    string
}

func (o *options) flags(flags *flag.FlagSet) {
	flags.IntVar(&o.warm, "warm", 3, "how many turns before those that count")
	flags.DurationVar(&o.turn, "turn", time.Second, "about how long a turn is")
	flags.StringVar(&o.only, "only", "", "parts to run, separated by commas: contest, batches, disk, groups (default all, with -quick contest)")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "a directory on a disk: a temporary one is made in it")
}

// complete fills in what depends on the rest, and reports what is wrong.
func (o *options) complete(rounds int, quick bool) error {
	o.rounds = rounds
	all := []string{partContest, partBatches, partDisk, partGroups}
	o.parts = all
	if quick {
		o.parts, o.warm, o.turn = []string{partContest}, min(o.warm, 1), min(o.turn, 300*time.Millisecond)
	}
	if o.only != "" {
		o.parts = strings.Split(o.only, ",")
	}
	for _, p := range o.parts {
		if !slices.Contains(all, p) {
			return fmt.Errorf("there is no part %q: want some of %s", p, strings.Join(all, ", "))
		}
	}
	if o.warm < 0 || o.warm > 100 || o.turn < 10*time.Millisecond || o.turn > time.Minute {
		return errors.New("want 0 to 100 turns to warm up, of 10 ms to 1 min each")
	}
	return nil
}

func (o *options) wants(part string) bool { return slices.Contains(o.parts, part) }

// turns guesses how often the referee will tell of progress.
func (o *options) turns() int {
	const everyone, compared, busy, own = 8, 4, 5, 9
	n := o.warm * (everyone + 2*javaTurns)
	for part, each := range map[string]int{
		partContest: everyone, partBatches: compared * len(batchSizes()), partDisk: busy, partGroups: own,
	} {
		if o.wants(part) {
			n += o.rounds * (each + 1)
		}
	}
	return n
}

// run answers the question.
func (o *options) run(ctx context.Context, run *kit.Run) error {
	if err := o.complete(run.Rounds, run.Quick); err != nil {
		return err
	}
	run.Expect(o.turns())
	r, err := measure(ctx, *o, run)
	if err != nil {
		return err
	}
	if run.Docs != "" {
		if err := writePage(run.Docs, r); err != nil {
			return err
		}
	}
	r.tell(run.Result)
	return nil
}

// measure runs the parts that are wanted. Whatever happens, all processes have
// ended and all files are gone when it returns.
func measure(ctx context.Context, o options, run *kit.Run) (r *report, err error) {
	dir, err := os.MkdirTemp(o.dir, "bench-flease-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r = &report{Command: run.Command, Machine: thisMachine(ctx, dir)}
	if r.Machine.Files == memoryFiles {
		return nil, fmt.Errorf("%s is in memory: name a directory on a disk with -dir", o.dir)
	}
	judge := &referee{length: o.turn, progress: run.Step}
	if o.wants(partContest) || o.wants(partBatches) || o.wants(partDisk) {
		if err := judge.sideBySide(ctx, o, dir, r); err != nil {
			return nil, err
		}
	}
	if o.wants(partGroups) {
		if r.Groups, err = judge.groupFigure(ctx, o.rounds); err != nil {
			return nil, err
		}
	}
	r.Goals = r.judge()
	return r, nil
}

// sideBySide runs the parts in which lock services take part.
func (r *referee) sideBySide(ctx context.Context, o options, dir string, to *report) error {
	r.progress("starting flease, etcd and ZooKeeper, three processes each")
	a, err := openArena(ctx, dir, o.turn)
	if err != nil {
		return err
	}
	defer a.close()
	to.Machine.ZooKeeper, to.Skipped = a.zooKeeper, a.skipped
	for _, s := range a.skipped {
		r.progress("SKIPPED %s", s)
	}
	if err := r.warmUp(ctx, a, o.warm); err != nil {
		return err
	}
	if o.wants(partBatches) {
		if to.Batches, err = r.batchFigure(ctx, a, o.rounds); err != nil {
			return err
		}
	}
	if o.wants(partDisk) {
		strains, writer, err := r.diskFigure(ctx, a, dir, o.rounds)
		if err != nil {
			return err
		}
		to.Disk, to.Writer = strains, &writer
	}
	if o.wants(partContest) { // last: by now everyone is as fast as he gets
		if to.Contest, err = r.contest(ctx, a, o.rounds); err != nil {
			return err
		}
	}
	return nil
}
