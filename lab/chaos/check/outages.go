package check

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
)

// Quiet reports whether no key was granted since a time, and all living callers have contact.
func (b *Book) Quiet(since oracle.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, tenures := range b.tenures {
		if slices.ContainsFunc(tenures, func(t tenure) bool { return t.resumed > since }) {
			return false
		}
	}
	return !slices.ContainsFunc(b.callers, func(c *Caller) bool {
		return !c.gone && len(c.contacts) > 0 && c.contacts[len(c.contacts)-1].restored == 0
	})
}

// An Outage is a fault of managers, store or network, without a fault of an owner.
type Outage struct {
	Kind string
	From oracle.Time
	lsn  leasehold.LSN // the newest of any caller at that time
}

// Outage records the begin of an outage.
func (b *Book) Outage(kind string, from oracle.Time) Outage {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := Outage{Kind: kind, From: from}
	for _, c := range b.callers {
		o.lsn = max(o.lsn, c.lsn)
	}
	return o
}

// JudgeOutage judges an outage when every key has an owner again: it lost nothing (I11).
//
// A key counts if a session held it when the outage began. It must have the same lease afterwards, unless the
// leader recalled the lease from a running owner and granted the range to another, to balance. No caller may
// receive a loss of the key, unless the cause is lost contact. At least half of the keys must count;
// otherwise the outage shows too little.
func (b *Book) JudgeOutage(o Outage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n.Outages++
	judged := 0
	for _, key := range b.keys {
		tenures := slices.SortedFunc(slices.Values(b.tenures[key]), byGeneration)
		at := slices.IndexFunc(tenures, func(t tenure) bool { return t.began <= o.From && o.From <= t.ended })
		if at < 0 {
			continue // not held: in transfer between owners
		}
		judged++
		held := &tenures[at]
		if at+1 == len(tenures) {
			b.n.Kept++
			b.judgeReportsAfter(&o, key, held)
			continue
		}
		next := &tenures[at+1]
		if next.session != held.session && b.recalled(key, held.generation, o.From) {
			b.n.Reassigned++
			continue
		}
		b.add("I11", "an outage ended a lease", "%s, begun at %d: key %v was held under generation %d by session %s until %d, and then under %d by session %s from %d",
			o.Kind, o.From, key, held.generation, held.session.Short(), held.ended, next.generation, next.session.Short(), next.began)
	}
	if 2*judged < len(b.keys) {
		b.add("I11", "an outage began while most keys had no owner", "%s, begun at %d: %d of %d keys were held, too few for a judgement", o.Kind, o.From, judged, len(b.keys))
	}
}

// recalled reports whether a caller received a loss because the owner released the lease.
func (b *Book) recalled(key leasehold.Key, g leasehold.Generation, since oracle.Time) bool {
	return slices.ContainsFunc(b.callers, func(c *Caller) bool {
		return slices.ContainsFunc(c.losses, func(l receipt) bool {
			return l.at >= since && l.Cause == leasehold.CauseReleased && l.Generation == g && l.Range().Contains(key)
		})
	})
}

// judgeReportsAfter finds losses of a key that were reported although its lease continued. A loss is from
// before the outage if its LSN is, or if it is of an earlier lease.
func (b *Book) judgeReportsAfter(o *Outage, key leasehold.Key, t *tenure) {
	for _, c := range b.callers {
		for _, l := range c.losses {
			if l.at >= o.From && l.LSN > o.lsn && l.Cause != leasehold.CauseContact && l.Range().Contains(key) && (l.Generation == 0 || l.Generation >= t.generation) {
				b.add("I11", "a loss was reported after an outage in which nothing was lost", "%s, begun at %d: caller %s received at %d the loss of key %v (%v, generation %d, LSN %d), which is held under generation %d",
					o.Kind, o.From, c.name, l.at, key, l.Cause, l.Generation, l.LSN, t.generation)
				return
			}
		}
	}
}
