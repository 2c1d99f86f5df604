package sim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// checkFollows is I5 at a lookup: its LSN never goes back, and its table is
// the table of that LSN.
func (o *oracle) checkFollows(l *lookupHost, t *table.Table) {
	if l.watch.known && t.LSN() < l.watch.lsn {
		o.Violated(I5Tables, "%s goes back from lsn %d to %d", l.label, l.watch.lsn, t.LSN())
		return
	}
	o.checkTable(l.host, l.space, t)
}

// checkTable is I5: a process that has a table of LSN n has the committed table of LSN n.
func (o *oracle) checkTable(h *host, s *space, t *table.Table) {
	o.Checks[I5Tables]++
	switch version, known := o.truth(s).at[t.LSN()]; {
	case !known:
		o.Violated(I5Tables, "%s is at lsn %d of %s, which was never committed", h.label, t.LSN(), s.name)
	case hashTable(t) != version.hash:
		o.Violated(I5Tables, "%s has a table of %s at lsn %d that differs from the committed one", h.label, s.name, t.LSN())
	}
}

func hashTable(t *table.Table) uint64 {
	h := engine.Hash(t.LSN())
	for r, e := range t.All() {
		h.Mix(uint64(r.Start), uint64(e.Generation))
		h.Mix(uint64(e.Lost), uint64(e.Adopted))
		if !e.Vacant() {
			h.Mix(uint64(e.Holder.Session[0])<<8|uint64(e.Holder.Session[1]), uint64(len(e.Holder.Owner)))
		}
	}
	return uint64(h)
}

// A lookupWatch is the oracle's state for a lookup.
type lookupWatch struct {
	known bool  // it has a table
	since int64 // true time of its first table: earlier losses are not reported
	lsn   leasehold.LSN
	table *table.Table
	// reportedAll is the true time at which it last reported everything as lost.
	reportedAll int64
	contactLost bool
}

type lookupStep struct {
	table    *table.Table
	losses   []leasehold.Loss
	contacts []bool // lost or restored, in order
	snapshot bool
}

func (o *oracle) lookupStepped(l *lookupHost, step *lookupStep) {
	reported := step.losses[:0:0]
	for _, loss := range step.losses {
		switch {
		case loss.Cause != leasehold.CauseContact:
			reported = append(reported, loss)
		case !o.conservative():
			o.Violated(I4Losses, "%s reports the loss of %v because contact is lost, but is not conservative", l.label, loss.Range)
		default:
			l.watch.reportedAll = o.Now
		}
	}
	for _, lost := range step.contacts {
		if lost == l.watch.contactLost {
			o.Violated(I4Losses, "%s reports twice in a row that contact is lost, or restored: %v", l.label, step.contacts)
		}
		l.watch.contactLost = lost
	}
	if step.table != nil {
		o.checkFollows(l, step.table)
		if l.watch.known && o.Violation == nil {
			o.checkReported(l, step, reported)
		}
		if !l.watch.known {
			l.watch.known, l.watch.since = true, o.Now
		}
		o.checkResumed(l, step.table)
		l.watch.lsn, l.watch.table = step.table.LSN(), step.table
		if o.Violation != nil {
			return
		}
	} else if len(reported) > 0 {
		o.Violated(I4Losses, "%s reports %v without a new table", l.label, reported[0])
	}
	o.checkReportedInTime(l)
}

// checkReported is the first half of I4: when a lookup's table goes from one LSN to another, it reports every
// loss in between, and nothing else. After a snapshot it may report more, but only ranges in suspect.
func (o *oracle) checkReported(l *lookupHost, step *lookupStep, reported []leasehold.Loss) {
	o.Checks[I4Losses]++
	t := o.truth(l.space)
	from, to := l.watch.lsn, step.table.LSN()
	first, last := t.at[from].changes, t.at[to].changes
	if to < from || t.losses[last] == t.losses[first] && len(reported) == 0 {
		return
	}
	var said []leasehold.Range
	for _, loss := range reported {
		said = append(said, loss.Range)
	}
	s, r := keyrange.NewSet(said...), t.lost(from, to)
	if t.inLostHistory(from) && !t.inLostHistory(to) {
		r = r.Union(keyrange.NewSet(lostByGap(l.watch.table, step.table)...))
	}
	if silent := r.Subtract(s); len(silent) > 0 && !o.staleClaims() {
		o.Violated(I4Losses, "%s went from lsn %d to %d and did not report the loss of %v", l.label, from, to, silent)
	}
	if len(s.Subtract(r)) == 0 {
		return
	}
	if step.snapshot {
		r = t.suspect(from, to)
	}
	if invented := s.Subtract(r); len(invented) > 0 {
		o.Violated(I4Losses, "%s went from lsn %d to %d and reported the loss of %v, which was not lost", l.label, from, to, invented)
	}
}

// staleClaims reports whether owners may claim leases that ended long ago: the managers have no store, or an
// old one, and some owner's clock is too slow.
func (o *oracle) staleClaims() bool {
	return (o.cfg.Diskless || o.store.era > 0) && o.nemesis.beyond
}

// lost returns the losses recorded between two LSNs, except for those in a history that the store has lost
// and the lookup has not followed.
func (t *truth) lost(from, to leasehold.LSN) keyrange.Set {
	first, last, inside := t.at[from].changes, t.at[to].changes, t.inLostHistory(to)
	var lost []leasehold.Range
	for i := first; i < last; i++ {
		if loss, is := t.history[i].Loss(); is && (inside || !t.wasLost(loss.LSN)) {
			lost = append(lost, loss.Range)
		}
	}
	return keyrange.NewSet(lost...)
}

// suspect returns the ranges that a lookup may report as lost when it skips from one LSN to another by a snapshot: the recorded losses, and
//
//   - the rest of a lease that was merged with a lost range, since a lease has one LSN of its last loss;
//   - after a census: ranges that no owner was proven to hold, and ranges that were
//     granted or moved after the lookup's LSN, because the leader does not know of losses before its census. Also
//     losses recorded before the lookup's LSN, if an owner with a slow clock still holds the range;
//   - everything, if the lookup cannot derive the losses; see unsure.
func (t *truth) suspect(from, to leasehold.LSN) keyrange.Set {
	if t.unsure(from, to) {
		return keyrange.NewSet(leasehold.All)
	}
	first, last := t.at[from].changes, t.at[to].changes
	var set keyrange.Set
	add := func(r leasehold.Range) { set = set.Union(keyrange.NewSet(r)) }
	resets := t.resets
	for i := first; i <= last; i++ {
		for ; len(resets) > 0 && resets[0].changes <= i; resets = resets[1:] {
			if lsn := resets[0].table.LSN(); lsn <= from || lsn > to {
				continue
			}
			for r, e := range resets[0].table.All() {
				if g := t.grants[e.Adopted]; g == nil || g.lsn > from || t.ended(e.Adopted, r, first) {
					add(r)
				}
			}
		}
		if i == last {
			break
		}
		switch c := &t.history[i].Change; {
		case c.Kind == table.Vacated, overlaps(set, c.Range):
			add(c.Range)
		}
	}
	return set
}

// ended reports whether the first changes have recorded that a lease has ended in a range, or in a part of it.
func (t *truth) ended(g leasehold.Generation, r leasehold.Range, first int) bool {
	return slices.ContainsFunc(t.history[:first], func(h happened) bool {
		_, here := h.Range.Intersect(r)
		return h.Kind == table.Vacated && h.Generation == g && here
	})
}

func overlaps(s keyrange.Set, r leasehold.Range) bool {
	return slices.ContainsFunc(s, func(part leasehold.Range) bool {
		_, both := part.Intersect(r)
		return both
	})
}

// checkResumed is I4 for a caller that resumes from an LSN and has no earlier table: the losses in this table
// since that LSN are all losses since then, and otherwise only ranges in suspect.
func (o *oracle) checkResumed(l *lookupHost, now *table.Table) {
	t := o.truth(l.space)
	if now.LSN() < l.bookmark {
		return
	}
	var said []leasehold.Range
	for r, e := range now.All() {
		if now.LostSince(e, l.bookmark) {
			said = append(said, r)
		}
	}
	s, r := keyrange.NewSet(said...), t.lost(l.bookmark, now.LSN())
	if silent := r.Subtract(s); len(silent) > 0 && !o.staleClaims() {
		o.Violated(I4Losses, "a caller that resumes from lsn %d does not receive the loss of %v from %s at lsn %d", l.bookmark, silent, l.label, now.LSN())
	}
	if len(s.Subtract(r)) > 0 {
		if invented := s.Subtract(t.suspect(l.bookmark, now.LSN())); len(invented) > 0 {
			o.Violated(I4Losses, "a caller that resumes from lsn %d receives the loss of %v, which was not lost, from %s at lsn %d", l.bookmark, invented, l.label, now.LSN())
		}
	}
	if now.LSN()%4 == 0 {
		l.bookmark = now.LSN()
	}
}

// overdue reports whether a lookup should have reported a loss that happened at since: the age of its table
// then exceeds the limit on its own clock, and the timer for that has fired.
func (o *oracle) overdue(l *lookupHost, since int64) bool {
	late := 4 * lateTimers
	if o.Faults["starve"] > 0 {
		late += starvedTimers
	}
	if since >= l.clock.Since() {
		return l.now().Sub(l.clock.At(since)) > simStale+late
	}
	// The rate of its clock has changed since: use the slowest rate.
	return time.Duration(o.Now-since) > simStale*time.Duration(engine.TrueRate)/time.Duration(slowest)+late
}

// checkReportedInTime is the second half of I4: if a lookup has not received a loss for longer than the
// bound, it has reported that contact is lost. If it is conservative, it has reported everything as lost
// since that loss.
func (o *oracle) checkReportedInTime(l *lookupHost) {
	t := o.truth(l.space)
	if !l.watch.known || !l.alive || l.stopped != 0 {
		return
	}
	o.Checks[I4Losses]++
	at := t.at[l.watch.lsn].changes
	if t.losses[at] == t.losses[len(t.losses)-1] {
		return
	}
	for i := at; i < len(t.history); i++ {
		h := &t.history[i]
		if h.Kind != table.Vacated {
			continue
		}
		since := max(h.at, l.watch.since)
		aware := l.watch.contactLost
		if o.conservative() {
			aware = l.watch.reportedAll >= since
		}
		if !aware && o.overdue(l, since) {
			o.Violated(I4Losses, "%s has not reported the loss of lsn %d for %v, nor that contact is lost", l.label, h.LSN, time.Duration(o.Now-since))
		}
		return
	}
}
