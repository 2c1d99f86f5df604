package check

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
)

// A cut is a time in which a caller hears of nobody. It is longer than the stale time.
type cut struct {
	caller   string
	from, to oracle.Time
}

// Cut notes that a caller is isolated for a time. If that is longer than its stale time, it must report
// lost contact, or all as lost if it is conservative, when contact is restored at the latest (I4).
func (b *Book) Cut(caller string, from, to oracle.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if to-from > oracle.Time(b.stale) {
		b.cuts = append(b.cuts, cut{caller, from, to})
	}
}

func (t *cut) concerns(c *Caller) bool {
	return c.name == t.caller && c.opened != 0 && c.opened < t.from
}

// noticed reports whether a caller has reported that, until a time.
func (c *Caller) noticed(t *cut, by oracle.Time) bool {
	if !c.conservative {
		return slices.ContainsFunc(c.contacts, func(n contact) bool { return n.lost >= t.from && n.lost <= by })
	}
	return slices.ContainsFunc(c.losses, func(l heard) bool { return l.Cause == leasehold.CauseContact && l.at >= t.from && l.at <= by })
}

// settleCuts judges cuts that were over for long at a time.
func (b *Book) settleCuts(before oracle.Time) {
	b.cuts = slices.DeleteFunc(b.cuts, func(t cut) bool {
		by := b.due(t.to)
		if by >= before {
			return false
		}
		for _, c := range b.callers {
			said := t.concerns(c) && c.noticed(&t, by)
			if !t.concerns(c) || !said && c.last < by {
				continue // it could not know, or did not live to say so
			}
			if b.n.Cuts++; !said {
				b.add("I4", "a caller did not report that it has no contact", "caller %s heard of nobody from %d to %d, and did not report that it has no contact", c.name, t.from, t.to)
			}
		}
		return true
	})
}
