package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// batchSizes and groupSizes are those of the paper's figures 3 and 5, with additional
// sizes between the two of figure 3.
func batchSizes() []int { return []int{1_000, 2_000, 5_000, 10_000, 20_000, 50_000} }
func groupSizes() []int { return []int{3, 4, 5, 6, 7, 8, 9, 10, 15} }

// processes is the number of processes that acquire leases in figure 5.
const processes = 15

// A point is the rate of a contestant at one size, of batches or of groups.
type point struct {
	Name string
	Size int
	Rate locks.Rate
}

type contest struct {
	locks.Contest
	run *report.Run
}

// javaTurns is how many turns a Java process needs for each turn of the others, until
// its compiler has done most of its work.
const javaTurns = 5

// warmUp gives all contestants turns that do not count.
func (c *contest) warmUp(ctx context.Context, all []locks.Entry, turns int) error {
	if _, err := c.Rounds(ctx, all, turns, "warming up"); err != nil {
		return err
	}
	_, err := c.Rounds(ctx, locks.Named(all, nameZooKeeper, nameZooKeeperSync), javaTurns*turns, "warming up")
	return err
}

// batchFigure is figure 3: does the size of a batch matter?
func (c *contest) batchFigure(ctx context.Context, all []locks.Entry) ([]point, error) {
	var entries []locks.Entry
	var points []point
	for _, e := range locks.Named(all, nameFlease, nameEtcdClient, nameEtcd, nameZooKeeper) {
		for _, size := range batchSizes() {
			e.Batch = proposers * size
			entries, points = append(entries, e), append(points, point{Name: e.Name, Size: size})
		}
	}
	return c.points(ctx, entries, points, "figure 3, batches of several sizes")
}

// points fills in the rates of points, of which each has an entry.
func (c *contest) points(ctx context.Context, entries []locks.Entry, points []point, what string) ([]point, error) {
	turns, err := c.Rounds(ctx, entries, c.run.Rounds, what)
	for i := range points {
		points[i].Rate = locks.RateOf(turns[i])
	}
	return points, err
}

// longLease is so much longer than the slowest batch of figure 5 that no lease is
// renewed during it: 150,000 leases, each agreed upon by 15.
const longLease = 30 * time.Second

// groupFigure is figure 5: what does it cost that more members have to agree?
func (c *contest) groupFigure(ctx context.Context) ([]point, error) {
	c.Step("figure 5: starting %d processes", processes)
	g, err := startFlease(ctx, processes, longLease, false)
	if err != nil {
		return nil, err
	}
	defer g.close()
	var entries []locks.Entry
	var points []point
	for _, size := range groupSizes() {
		entries = append(entries, locks.Entry{Name: fmt.Sprintf("groups of %d", size), Batch: processes * usualBatch, Service: &group{g.members, size}})
		points = append(points, point{Name: nameFlease, Size: size})
	}
	if _, err := c.Rounds(ctx, entries, 1, "figure 5, warming up"); err != nil {
		return nil, err
	}
	return c.points(ctx, entries, points, "figure 5, groups of several sizes")
}

// A strain is the rates of a contestant with an idle disk, and with a disk that another
// process keeps busy.
type strain struct {
	Name       string
	Idle, Busy locks.Rate
	Change     float64 // the median over pairs of turns; -0.1 is a tenth less
}

// diskFigure is figure 4: what does it cost that another process uses the disk?
func (c *contest) diskFigure(ctx context.Context, entries []locks.Entry, dir string) (strains []strain, written Written, err error) {
	all := locks.Named(entries, nameFlease, nameEtcd, nameEtcdSync, nameZooKeeper, nameZooKeeperSync)
	w, err := proc.Start(ctx, roleWriter, filepath.Join(dir, "written"))
	if err != nil {
		return nil, written, err
	}
	defer w.Close()
	idle, busy := make([][]locks.Turn, len(all)), make([][]locks.Turn, len(all))
	measure := func(round, i int) error {
		p, err := c.pair(ctx, all[i], w, (round+i)%2 == 1)
		idle[i], busy[i] = append(idle[i], p.idle), append(busy[i], p.busy)
		written = written.plus(p.written)
		return err
	}
	err = report.Rounds(ctx, c.run.Rounds, len(all), func(round, i int) error {
		// The goal is that Flease's rate changes by less than a tenth, so it gets several
		// pairs of turns in a round.
		if i > 0 {
			if err := measure(round+i, 0); err != nil {
				return err
			}
		}
		return measure(round, i)
	}, func(round int) { c.Step("figure 4, idle and busy disk, round %d of %d", round+1, c.run.Rounds) })
	for i, e := range all {
		strains = append(strains, strain{e.Name, locks.RateOf(idle[i]), locks.RateOf(busy[i]), pairedChange(idle[i], busy[i])})
	}
	return strains, written, err
}

// pairedChange returns the median change from each idle turn to the busy turn paired
// with it.
func pairedChange(before, after []locks.Turn) float64 {
	var a, b []float64
	for i := range before {
		a, b = append(a, before[i].Rate()), append(b, after[i].Rate())
	}
	if ratio := report.PairedRatio(b, a); ratio > 0 {
		return ratio - 1
	}
	return 0
}

// A pair is two turns whose batches alternate, and the amount written during one of
// them.
type pair struct {
	idle, busy locks.Turn
	written    Written
}

// pair lets a service acquire batch after batch, with the disk alternately idle and
// busy, until it has had a turn of each. Where other virtual machines share the
// processors, their speed changes from second to second, but little between two
// consecutive batches. The first batch may influence the second, so the order
// alternates as well.
func (c *contest) pair(ctx context.Context, e locks.Entry, w *proc.Process, busyFirst bool) (p pair, err error) {
	for i := 0; p.idle.Took < c.Length || p.busy.Took < c.Length; i++ {
		if (i%2 == 0) != busyFirst {
			t, err := c.Batch(ctx, e, nil)
			if err != nil {
				return p, err
			}
			p.idle = p.idle.Plus(t)
			continue
		}
		t, written, err := c.batchWhileWriting(ctx, e, w)
		if err != nil {
			return p, err
		}
		p.busy, p.written = p.busy.Plus(t), p.written.plus(written)
	}
	c.Step("%s: %s/s with an idle disk, %s/s with a busy one", e.Name, report.Thousands(p.idle.Rate()), report.Thousands(p.busy.Rate()))
	return p, nil
}

// batchWhileWriting lets a service acquire a batch while the disk is busy, and release
// it when the disk is idle again. With a busy disk, the release would take a store that
// syncs longer than the batch; it is not measured.
func (c *contest) batchWhileWriting(ctx context.Context, e locks.Entry, w *proc.Process) (t locks.Turn, written Written, err error) {
	if err := w.Call("Write", nil, nil); err != nil {
		return t, written, err
	}
	t, err = c.Batch(ctx, e, func() error { return w.Call("Rest", nil, &written) })
	return t, written, err
}
