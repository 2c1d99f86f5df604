package explore

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/lab/sim"
	"github.com/leasehold-dev/leasehold/lab/sim/explore/image"
	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

// A lookup follows the table of any manager; a standby follows that of the leader, for its lookups. The number of a
// process identifies it as the sender of a request for the table.

// poll is the interval of a lookup's requests, and stale the age of its table at which contact is lost.
const (
	poll  = 4 * time.Second
	stale = 3 * poll
)

func lookupConfig() lookup.Config {
	return lookup.Config{
		Namespace: namespace, ID: follower, Poll: poll, Stale: stale, Rand: explorer.Constant(), Managers: managerNames[:],
	}
}

// sendTable sends an event about the table to the process that has requested it.
func (st *state) sendTable(to uint64, what lookup.Event) {
	if to < managers {
		st.post(&message{to: int(to), what: managerproc.Followed{Namespace: namespace, Event: what}})
		return
	}
	st.post(&message{to: int(to), what: what})
}

// broadcast sends changes to all processes that have requested the table from a manager.
func (st *state) broadcast(p *process, reply *protocol.LookupReply) {
	for i := range uint64(processes) {
		if p.followers>>i&1 == 1 {
			st.sendTable(i, lookup.Reply{LookupReply: reply})
		}
	}
}

func (st *state) callLookup(i int, p *process, event any) {
	before := p.lookup.Table()
	p.lookup = image.Copy(st.kit.image, p.lookup)
	var actions []lookup.Action
	if event == nil {
		actions, p.wake = p.lookup.Advance(st.clock(i))
	} else {
		actions, p.wake = p.lookup.Step(st.clock(i), event.(lookup.Event))
	}
	var lost []leasehold.Loss
	for _, a := range actions {
		switch a := a.(type) {
		case lookup.Send:
			for m := range managers {
				if a.To == "" || a.To == managerNames[m] {
					st.post(&message{to: m, what: managerproc.Lookup{LookupRequest: a.Request}})
				}
			}
		case lookup.Losses:
			lost = append(lost, a.Losses...)
		}
	}
	st.lost = len(lost) > 0
	st.checkFollowed(before, p.lookup.Table(), lost)
}

// checkFollowed is I5 and I4 at a lookup: its table is a committed one, and does not go back; all losses between
// its tables are reported, and nothing else.
func (st *state) checkFollowed(before, after *table.Table, lost []leasehold.Loss) {
	if after == nil {
		return
	}
	n := int(after.LSN())
	switch {
	case n >= len(st.store.tables):
		st.violated(sim.I5Tables, "the lookup is at lsn %d, which was not committed", n)
		return
	case !sameTable(after, st.store.tables[n]):
		st.violated(sim.I5Tables, "the lookup has a table at lsn %d that differs from the committed one", n)
	case before != nil && before.LSN() > after.LSN():
		st.violated(sim.I5Tables, "the lookup goes back from lsn %d to %d", before.LSN(), n)
	}
	if before == nil {
		return
	}
	var recorded, reported []leasehold.Range
	for _, c := range st.store.changes[min(int(before.LSN()), n):n] {
		if l, is := c.Loss(); is {
			recorded = append(recorded, l.Range)
		}
	}
	for _, l := range lost {
		reported = append(reported, l.Range)
	}
	if r, found := uncovered(recorded, reported); found {
		st.violated(sim.I4Losses, "the lookup is at lsn %d, and has not reported the loss of %v", n, r)
	}
	if r, found := uncovered(reported, recorded); found {
		st.violated(sim.I4Losses, "the lookup has reported %v as lost up to lsn %d, and it was not", r, n)
	}
}

// uncovered returns a range of which a half of the key space is in none of the others. All ranges are halves or the
// whole.
func uncovered(ranges, others []leasehold.Range) (leasehold.Range, bool) {
	has := func(all []leasehold.Range, half leasehold.Key) bool {
		return slices.ContainsFunc(all, func(r leasehold.Range) bool { return r.Contains(half) })
	}
	for _, r := range ranges {
		for _, half := range []leasehold.Key{0, middle} {
			if r.Contains(half) && !has(others, half) {
				return r, true
			}
		}
	}
	return leasehold.Range{}, false
}
