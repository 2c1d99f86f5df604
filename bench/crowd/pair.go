package crowd

import (
	"context"
	"errors"
	"sync"
)

// A Pair is a crowd of owners and one of lookups, in a process each: what lookups have to read
// does not keep owners from renewing, as it would not if they were computers of their own.
type Pair struct{ owners, lookups *Process }

// StartPair starts a pair that has nobody yet. It ends with its parent. Owners speak to
// some managers, of which one has to lead, and lookups to some.
func StartPair(ctx context.Context, namespace string, ofOwners, ofLookups []string) (*Pair, error) {
	owners, err := Start(ctx, namespace, ofOwners...)
	if err != nil {
		return nil, err
	}
	lookups, err := Start(ctx, namespace, ofLookups...)
	if err != nil {
		owners.Close()
		return nil, err
	}
	return &Pair{owners, lookups}, nil
}

// Obey has both carry out their part of an order, and returns what they have counted together.
func (p *Pair) Obey(o Order) (Counts, error) {
	owners, lookups := o, o
	owners.Lookups, lookups.Owners = 0, 0
	var (
		both    sync.WaitGroup
		a, b    Counts
		errA, e error
	)
	both.Go(func() { a, errA = p.owners.Obey(owners) })
	b, e = p.lookups.Obey(lookups)
	both.Wait()
	return a.with(b), errors.Join(errA, e)
}

// with adds what lookups have counted to what owners have. The peak may be less than the sum:
// it need not have been in the same second.
func (c Counts) with(lookups Counts) Counts {
	c.Expired += lookups.Expired
	c.Stale += lookups.Stale
	c.Gaps += lookups.Gaps
	c.Repeats += lookups.Repeats
	c.Broken += lookups.Broken
	c.Strange += lookups.Strange
	c.Unheard += lookups.Unheard
	c.In += lookups.In
	c.Out += lookups.Out
	c.Peak += lookups.Peak
	c.Proven, c.Lowest, c.WorstTable = lookups.Proven, lookups.Lowest, lookups.WorstTable
	return c
}

// Close ends both.
func (p *Pair) Close() {
	p.owners.Close()
	p.lookups.Close()
}
