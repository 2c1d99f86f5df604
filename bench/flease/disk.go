package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/bench/kit"
)

// A strain is how one did while the disk was idle, and while another process
// kept it busy.
type strain struct {
	Name   string
	Idle   summary
	Busy   summary
	Change float64 // the median over pairs of turns; -0.1 is a tenth less
}

// A load is what the disk's writer did.
type load struct {
	BytesPerSecond float64
	SyncsPerSecond float64
	CPUs           float64 // of all that there are
}

// diskFigure is figure 4: what does it cost that somebody else uses the disk?
func (r *referee) diskFigure(ctx context.Context, a *arena, dir string, rounds int) ([]strain, load, error) {
	all := a.named(nameFlease, nameEtcd, nameEtcdSync, nameZooKeeper, nameZooKeeperSync)
	w, err := cast.Begin(ctx, "disk-writer", "-file", filepath.Join(dir, "written"))
	if err != nil {
		return nil, load{}, err
	}
	defer w.Close()
	if err := w.Await(); err != nil {
		return nil, load{}, err
	}
	// The question is whether Flease's rate changes by a tenth: so it has several pairs
	// of turns in a round.
	places := []int{0, 1, 0, 2, 0, 3, 0, 4}
	idle, busy := make([][]turn, len(all)), make([][]turn, len(all))
	var written answer
	for round := range rounds {
		r.progress("figure 4, idle and busy disk, round %d of %d", round+1, rounds)
		for n, i := range places {
			// Whoever comes second may find what the first left behind: they take
			// turns at that, too.
			p, err := r.pair(ctx, all[i], w, (round+n)%2 == 1)
			if err != nil {
				return nil, load{}, err
			}
			idle[i], busy[i] = append(idle[i], p.idle), append(busy[i], p.busy)
			written = addAnswers(written, p.written)
		}
	}
	var strains []strain
	for i, e := range all {
		strains = append(strains, strain{e.name, summarise(idle[i]), summarise(busy[i]), pairedChange(idle[i], busy[i])})
	}
	return strains, loadOf(written), nil
}

// A pair is two turns, batch by batch beside each other, and what was written in one of
// them.
type pair struct {
	idle, busy turn
	written    answer
}

// pair lets one acquire batch after batch, with the disk idle and busy by turns, until
// it has had a turn of each. Where other computers share the processors, a second is
// not like the one before it; neighbouring batches are more alike.
func (r *referee) pair(ctx context.Context, e entry, w *process, busyFirst bool) (pair, error) {
	var p pair
	for i := 0; i < mostBatches && (p.idle.Took < r.length || p.busy.Took < r.length); i++ {
		if (i%2 == 0) != busyFirst {
			t, err := r.batch(ctx, e, usualBatch)
			if err != nil {
				return pair{}, err
			}
			p.idle = p.idle.Plus(t)
			continue
		}
		t, wrote, err := r.batchWhileWriting(ctx, e, w)
		if err != nil {
			return pair{}, err
		}
		p.busy, p.written = p.busy.Plus(t), addAnswers(p.written, wrote)
	}
	r.progress("  %-*s %10s/s with an idle disk, %10s/s with a busy one", nameWidth, e.name, kit.Thousands(p.idle.Rate()), kit.Thousands(p.busy.Rate()))
	return p, nil
}

// batchWhileWriting lets one acquire a batch while the disk is busy, and give it back when
// it is not: that takes a store that syncs longer than the batch does, and is not measured.
func (r *referee) batchWhileWriting(ctx context.Context, e entry, w *process) (t turn, wrote answer, err error) {
	if _, err := w.Ask(order{Do: orderWrite}); err != nil {
		return turn{}, answer{}, err
	}
	t, err = r.batchThen(ctx, e, usualBatch, func() (err error) {
		wrote, err = w.Ask(order{Do: orderRest})
		return err
	})
	return t, wrote, err
}

// addAnswers adds what was written at different times.
func addAnswers(a, b answer) answer {
	return answer{Bytes: a.Bytes + b.Bytes, Syncs: a.Syncs + b.Syncs, CPU: a.CPU + b.CPU, End: a.End - a.Begin + b.End - b.Begin}
}

func loadOf(a answer) load {
	seconds := time.Duration(a.End - a.Begin).Seconds()
	if seconds <= 0 {
		return load{}
	}
	return load{float64(a.Bytes) / seconds, float64(a.Syncs) / seconds, time.Duration(a.CPU).Seconds() / seconds}
}
