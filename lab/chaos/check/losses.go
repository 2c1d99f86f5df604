package check

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
)

// judgeLosses checks that callers are notified of lost state (I4).
//
// Owners of a chaos run move no state. So when a key is held under another generation than before, its
// state was lost in between. Every caller whose lookup was open before must be notified of that, or of
// lost contact: no sooner than the first tenure is known to have ended, and no later than the stale time
// after the second is known to have begun. And a key that is reported as lost must not be held under
// that generation any more.
//
// A lease is judged when the time for all notifications of the next one is over.
func (b *Book) judgeLosses(before oracle.Time) {
	b.sortLosses()
	for _, key := range b.keys {
		tenures := b.tenures[key]
		slices.SortFunc(tenures, byGeneration)
		for i := range tenures {
			b.judgeReports(key, &tenures[i])
		}
		for len(tenures) > 1 && tenures[0].ended < before && b.due(tenures[1].began) < before && !b.open(tenures[1].began) {
			if tenures[0].generation != tenures[1].generation {
				b.judgeLoss(key, tenures[0], tenures[1])
			}
			tenures = tenures[1:]
		}
		b.tenures[key] = slices.Clone(tenures) // frees the judged ones
	}
}

// dueTo returns the deadline of a notification to a caller. If the caller has reported lost contact before
// that, the deadline is when contact is restored; if it is not restored yet, the deadline is open.
func (b *Book) dueTo(c *Caller, at oracle.Time) (by oracle.Time, open bool) {
	by = b.due(at)
	if c.conservative {
		return by, false
	}
	for _, t := range c.contacts {
		if t.lost > by {
			break
		}
		if t.restored == 0 {
			return by, !c.gone
		}
		by = max(by, t.restored+oracle.Time(b.slack))
	}
	return by, false
}

// open reports whether some caller without contact must still receive a notification of an event.
func (b *Book) open(at oracle.Time) bool {
	return slices.ContainsFunc(b.callers, func(c *Caller) bool {
		_, open := b.dueTo(c, at)
		return open
	})
}

// due returns the deadline of a notification to callers with contact.
func (b *Book) due(at oracle.Time) oracle.Time { return at + oracle.Time(b.stale+b.slack) }

// prune drops notifications that are not needed any more, and callers that ended before.
func (b *Book) prune(before oracle.Time) {
	for _, tenures := range b.tenures {
		if len(tenures) > 0 {
			before = min(before, tenures[0].ended)
		}
	}
	for _, c := range b.cuts {
		before = min(before, c.from)
	}
	for _, c := range b.callers {
		i, _ := slices.BinarySearchFunc(c.losses, before, func(h receipt, at oracle.Time) int { return cmp.Compare(h.at, at) })
		c.losses = slices.Clone(c.losses[i:])
		c.contacts = slices.DeleteFunc(c.contacts, func(t contact) bool { return t.restored != 0 && t.restored < before })
	}
	b.callers = slices.DeleteFunc(b.callers, func(c *Caller) bool { return c.gone && c.last < before })
}

func (b *Book) judgeLoss(key leasehold.Key, before, after tenure) {
	for _, c := range b.callers {
		if c.opened == 0 || c.opened >= before.ended {
			continue // opened too late
		}
		by, _ := b.dueTo(c, after.began)
		received := c.received(key, &before, by)
		if !received && c.last < by {
			continue // ended before the deadline
		}
		b.n.Losses++
		if received && !c.received(key, &before, after.began+oracle.Time(b.stale)) {
			b.n.Late++
		}
		if !received {
			b.add("I4", "a caller did not receive a loss", "caller %s did not receive a loss of key %v, which was held under generation %d until %d at least and under %d from %d at the latest",
				c.name, key, before.generation, before.ended, after.generation, after.began)
		}
	}
}

// received reports whether a caller received the loss of a tenure by a time. A later generation is another
// loss; in a snapshot, the loss of an earlier one includes all later ones.
func (c *Caller) received(key leasehold.Key, t *tenure, by oracle.Time) bool {
	i, _ := slices.BinarySearchFunc(c.losses, t.ended, func(h receipt, at oracle.Time) int { return cmp.Compare(h.at, at) })
	for ; i < len(c.losses) && c.losses[i].at <= by; i++ {
		if l := &c.losses[i]; l.Generation <= t.generation && l.Range().Contains(key) {
			return true
		}
	}
	return false
}

// PendingLosses returns the number of losses that running callers have not received yet.
func (b *Book) PendingLosses() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sortLosses()
	for i := range b.cuts {
		for _, c := range b.callers {
			if b.cuts[i].concerns(c) && !c.gone && c.last <= b.due(b.cuts[i].to) && !c.noticed(&b.cuts[i], b.due(b.cuts[i].to)) {
				n++
			}
		}
	}
	for _, key := range b.keys {
		tenures := slices.SortedFunc(slices.Values(b.tenures[key]), byGeneration)
		for i := range tenures {
			if i+1 == len(tenures) || tenures[i].generation == tenures[i+1].generation {
				continue
			}
			for _, c := range b.callers {
				by, open := b.dueTo(c, tenures[i+1].began)
				if !c.gone && c.opened != 0 && c.opened < tenures[i].ended && (open || c.last <= by) && !c.received(key, &tenures[i], by) {
					n++
				}
			}
		}
	}
	return n
}

func (b *Book) sortLosses() {
	for _, c := range b.callers {
		slices.SortFunc(c.losses, func(x, y receipt) int { return cmp.Compare(x.at, y.at) })
	}
}

func byGeneration(x, y tenure) int { return cmp.Compare(x.generation, y.generation) }

// judgeReports finds reported losses of a lease that was held later.
func (b *Book) judgeReports(key leasehold.Key, t *tenure) {
	if t.misreported {
		return // counted already
	}
	for _, c := range b.callers {
		for _, l := range c.losses {
			if l.at >= t.ended {
				break
			}
			if l.Generation == t.generation && l.Range().Contains(key) {
				b.add("I4", "a reported loss was false", "caller %s received at %d that key %v was lost under generation %d, which was held until %d at least",
					c.name, l.at, key, t.generation, t.ended)
				t.misreported = true
				return
			}
		}
	}
}
