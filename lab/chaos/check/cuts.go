package check

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
)

// A cut is a period in which a caller receives no message of a manager. It is longer than the stale time.
type cut struct {
	caller   string
	from, to oracle.Time
}

// Cut records that a caller is isolated for a time. If that is longer than its stale time, it must report
// lost contact, or everything as lost if it is conservative, at the latest when contact is restored (I4).
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

// noticed reports whether a caller has reported a cut by a time.
func (c *Caller) noticed(t *cut, by oracle.Time) bool {
	if !c.conservative {
		return slices.ContainsFunc(c.contacts, func(n contact) bool { return n.lost >= t.from && n.lost <= by })
	}
	return slices.ContainsFunc(c.losses, func(l receipt) bool { return l.Cause == leasehold.CauseContact && l.at >= t.from && l.at <= by })
}

// judgeCuts judges cuts whose deadline was before a time.
func (b *Book) judgeCuts(before oracle.Time) {
	b.cuts = slices.DeleteFunc(b.cuts, func(t cut) bool {
		by := b.due(t.to)
		if by >= before {
			return false
		}
		for _, c := range b.callers {
			reported := t.concerns(c) && c.noticed(&t, by)
			if !t.concerns(c) || !reported && c.last < by {
				continue // opened or ended during the cut
			}
			if b.n.Cuts++; !reported {
				b.add("I4", "a caller did not report lost contact", "caller %s had no contact from %d to %d, and did not report it", c.name, t.from, t.to)
			}
		}
		return true
	})
}
