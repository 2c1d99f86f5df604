package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

// proposers is how many processes want leases at a time. In the paper's
// experiments all machines submit a batch at the same time; so do all three
// processes of Flease, each for resources that are its own. Lock services get
// the same number of leases to acquire, from their clients.
const proposers = 3

// A contestant acquires leases. Its methods are for one goroutine at a time.
type contestant interface {
	// acquire acquires a batch of leases for each proposer, on resources that
	// nobody has had yet. Their names begin with name, which is new.
	acquire(ctx context.Context, batch int, name string) (turn, error)
	// release gives back what the last turn acquired. Nobody measures it.
	release(ctx context.Context) error
	// close ends all that the contestant started, and waits for it.
	close()
}

// An entry is a contestant under the name that tables have for it.
type entry struct {
	name string
	contestant
}

// A referee holds contests: it lets everyone have a turn in each round, so that a
// slow moment of the machine slows all of them down, and the median leaves it
// out.
type referee struct {
	length   time.Duration // of a turn, at least
	progress func(format string, args ...any)
	batches  int // so far: names are made of it
}

// mostBatches bounds a turn, whatever the clock says.
const mostBatches = 1000

// turn lets one acquire batch after batch until the turn is over. What it gives
// back in between costs it nothing.
func (r *referee) turn(ctx context.Context, e entry, batch int) (turn, error) {
	var sum turn
	for i := 0; i < mostBatches && sum.Took < r.length; i++ {
		t, err := r.batch(ctx, e, batch)
		if err != nil {
			return turn{}, err
		}
		sum = sum.Plus(t)
	}
	r.progress("  %-*s %10s/s in batches of %s", nameWidth, e.name, kit.Thousands(sum.Rate()), kit.Thousands(float64(batch)))
	return sum, nil
}

// batch lets one acquire a batch, and give it back.
func (r *referee) batch(ctx context.Context, e entry, batch int) (turn, error) {
	return r.batchThen(ctx, e, batch, func() error { return nil })
}

// batchThen lets one acquire a batch, and give it back when something else was done.
func (r *referee) batchThen(ctx context.Context, e entry, batch int, then func() error) (turn, error) {
	r.batches++
	t, err := e.acquire(ctx, batch, fmt.Sprintf("b%d", r.batches))
	err = errors.Join(err, then())
	if err == nil {
		err = e.release(ctx)
	}
	if ctx.Err() != nil {
		return turn{}, context.Cause(ctx)
	}
	if err != nil {
		return turn{}, fmt.Errorf("%s: %w", e.name, err)
	}
	return t, nil
}

// javaTurns is how many turns more a Java process needs, for each that others do,
// until its compiler has done most of its work.
const javaTurns = 5

// warmUp lets everyone have turns that do not count, until compilers and caches
// are warm.
func (r *referee) warmUp(ctx context.Context, a *arena, turns int) error {
	r.progress("warming up")
	if _, err := r.compete(ctx, a.all, turns, usualBatch); err != nil {
		return err
	}
	_, err := r.compete(ctx, a.named(nameZooKeeper, nameZooKeeperSync), javaTurns*turns, usualBatch)
	return err
}

// compete returns everyone's turns, in the order of the entries.
func (r *referee) compete(ctx context.Context, all []entry, rounds, batch int) ([][]turn, error) {
	turns := make([][]turn, len(all))
	if len(all) == 0 {
		return turns, nil
	}
	for round := range rounds {
		r.progress("round %d of %d", round+1, rounds)
		for i, e := range all {
			t, err := r.turn(ctx, e, batch)
			if err != nil {
				return nil, err
			}
			turns[i] = append(turns[i], t)
		}
	}
	return turns, nil
}
