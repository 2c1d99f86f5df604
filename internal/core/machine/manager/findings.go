package manager

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A claim is a lease that an owner reports in a census.
type claim struct {
	leasehold.Lease
	holder *table.Holder
	exact  bool
}

// claims returns all claims in ascending order of precedence: exact claims after inexact ones, newer leases after
// older ones. Of two claims for one range, the older lease has ended, or its owner's clock is broken.
func (c *Census) claims() []claim {
	var all []claim
	for _, w := range c.witnesses {
		for _, l := range w.leases {
			all = append(all, claim{l, w.holder, w.exact})
		}
	}
	for _, h := range c.handovers() {
		all = append(all, claim{leasehold.Lease{Range: h.Range, Generation: h.Newest}, h.from, true})
	}
	slices.SortFunc(all, func(a, b claim) int {
		if a.exact != b.exact {
			if b.exact {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Range.Start, b.Range.Start),
			slices.Compare(a.holder.Session[:], b.holder.Session[:]))
	})
	return all
}

// A handover is a range that its source has released, and whose target waits for the lease.
type handover struct {
	from *table.Holder
	protocol.MoveReport
}

// handovers returns the handovers that are not recorded, or not acknowledged by the target, in a fixed order.
// During the census such a range counts as the source's.
func (c *Census) handovers() []handover {
	var all []handover
	for _, w := range c.witnesses {
		for i := range w.handed {
			if c.arrived(&w.handed[i]) {
				all = append(all, handover{w.holder, w.handed[i]})
			}
		}
	}
	slices.SortFunc(all, func(a, b handover) int {
		return cmp.Or(cmp.Compare(a.Range.Start, b.Range.Start), slices.Compare(a.Ticket[:], b.Ticket[:]))
	})
	return all
}

// arrived reports whether a range that its source has handed over belongs to its target only. The target has the
// state and waits for the lease. A leader that counted on the move would have granted the range to another owner
// only after one of the two had expired or left. Their Backing, the term of the leader whose renewal has not run out,
// proves that neither has. The target's must not be older than the source's: the later leader may have found that
// the target has no seat.
func (c *Census) arrived(rep *protocol.MoveReport) bool {
	to := c.witnesses[rep.To.Session]
	return to != nil && slices.ContainsFunc(to.imports, func(in protocol.Import) bool {
		return in.Ticket == rep.Ticket && in.Backing >= rep.Backing && in.Range.Covers(rep.Range)
	})
}

// complete reports whether exact claims cover all keys. The sum is cheap, and excludes this in most cases.
func (c *Census) complete() bool {
	found := c.surveyed
	for _, w := range c.witnesses {
		for i := range w.handed {
			found += float64(w.handed[i].Range.Last() - w.handed[i].Range.Start)
		}
	}
	const all = 1 << 64
	if found < all*(1-1e-6) {
		return false
	}
	var ranges []leasehold.Range
	for _, cl := range c.claims() {
		if cl.exact {
			ranges = append(ranges, cl.Range)
		}
	}
	return len(keyrange.NewSet(ranges...).Gaps()) == 0
}

// until is when the leases of a silent witness have certainly expired: those that this leader renewed, and those
// that an earlier leader may have promised for longer.
func (c *Census) until(s leasehold.Session) mono.Instant { return max(c.end, c.witnesses[s].until) }

// table returns the result of the census. For an exact claim, lookups keep what they have under its generation. For
// everything else they must assume a loss.
func (c *Census) table() (*table.Table, error) {
	lsn, newest := storage.First(c.term)
	entries := keyrange.NewMap(table.Entry{Lost: lsn})
	for _, cl := range c.claims() {
		e := table.Entry{Generation: cl.Generation, Holder: cl.holder, Lost: lsn}
		if cl.exact {
			e.Adopted = cl.Generation
		}
		entries.Set(cl.Range, e)
	}
	return table.Restore(lsn, newest, entries)
}

// Lead returns the machine that continues with the result of a census that is over. Advance it at once.
func (c *Census) Lead(now mono.Instant) (*Machine, error) {
	t, err := c.table()
	if err != nil {
		return nil, err
	}
	cfg := c.cfg
	cfg.Takeover.FirstSeq = c.seq
	m, err := New(now, cfg, c.term, c.authority, &storage.State{Term: c.term, Table: t})
	if err != nil {
		return nil, err
	}
	m.census = c
	return m, nil
}
