package sim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/keyrange"
	"github.com/leasehold-dev/leasehold/internal/table"
)

// A lookupWatch is what the oracle remembers of a lookup.
type lookupWatch struct {
	known bool  // it has a table
	since int64 // when it got its first one: what was lost before is no news to it
	lsn   leasehold.LSN
	table *table.Table
	// despaired is when it last reported everything as lost.
	despaired int64
}

// A lookupStep is what a lookup did at once.
type lookupStep struct {
	table    *table.Table
	losses   []leasehold.Loss
	snapshot bool
}

// lookupStepped is a lookup having done something.
func (o *oracle) lookupStepped(l *lookupHost, step *lookupStep) {
	reported := step.losses[:0:0]
	for _, loss := range step.losses {
		if loss.Cause == leasehold.CauseContact {
			l.watch.despaired = o.world.now
		} else {
			reported = append(reported, loss)
		}
	}
	if step.table != nil {
		o.checkFollows(l, step.table)
		if l.watch.known && o.world.failed == nil {
			o.checkReported(l, step, reported)
		}
		if !l.watch.known {
			l.watch.known, l.watch.since = true, o.world.now
		}
		l.watch.lsn, l.watch.table = step.table.LSN(), step.table
		if o.world.failed != nil {
			return
		}
	} else if len(reported) > 0 {
		o.violated(I4Losses, "%s reports %v out of nowhere", l.label, reported[0])
	}
	o.checkReportedInTime(l)
}

// checkReported is I4, first half: when a lookup's table goes from one LSN to
// another, it reports every loss in between. From changes it reports nothing
// else; a snapshot may make it report too much, never too little.
func (o *oracle) checkReported(l *lookupHost, step *lookupStep, reported []leasehold.Loss) {
	o.checks[I4Losses]++
	t := o.truth(l.space)
	from, to := l.watch.lsn, step.table.LSN()
	first, last := t.at[from].changes, t.at[to].changes
	if to < from || t.losses[last] == t.losses[first] && len(reported) == 0 {
		return
	}
	var said, lost []leasehold.Range
	for _, loss := range reported {
		said = append(said, loss.Range)
	}
	for i := first; i < last; i++ {
		if loss, is := t.history[i].Loss(); is {
			if !t.wasLost(loss.LSN) {
				lost = append(lost, loss.Range)
			}
		}
	}
	if t.wasLost(from) && !slices.ContainsFunc(t.lost, func(h lostHistory) bool { return h.base == from }) {
		lost = append(lost, forsaken(l.watch.table, step.table)...)
	}
	s, r := keyrange.NewSet(said...), keyrange.NewSet(lost...)
	// Where there is no store, or an old one, owners are asked what they have. One whose
	// clock is too slow may name what was given up long ago.
	gullible := (o.world.cfg.Diskless || o.world.store.era > 0) && o.world.nemesis.beyond
	if silent := r.Subtract(s); len(silent) > 0 && !gullible {
		o.violated(I4Losses, "%s went from lsn %d to %d and did not report the loss of %v", l.label, from, to, silent)
	}
	if invented := s.Subtract(r); len(invented) > 0 && !step.snapshot {
		o.violated(I4Losses, "%s went from lsn %d to %d and reported the loss of %v, which was not lost", l.label, from, to, invented)
	}
}

// overdue reports whether a loss that happened at since should have been
// reported by now: the lookup's proof of knowing everything is then too old on
// its own clock, and the timer that tells it so has fired.
func (o *oracle) overdue(l *lookupHost, since int64) bool {
	late := 4 * lateTimers
	if o.world.stats.faults[Starve] > 0 {
		late += starvedTimers
	}
	if since >= l.clock.since {
		return l.clock.at(o.world.now).Sub(l.clock.at(since)) > simStale+late
	}
	// Its clock has changed its rate since: then what the slowest would show.
	return time.Duration(o.world.now-since) > simStale*time.Duration(trueRate)/time.Duration(slowest)+late
}

// checkReportedInTime is I4, second half: a loss that a lookup does not know
// of for longer than the bound has made it report everything as lost.
func (o *oracle) checkReportedInTime(l *lookupHost) {
	t := o.truth(l.space)
	if !l.watch.known || !l.alive || l.stopped != 0 {
		return
	}
	o.checks[I4Losses]++
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
		if l.watch.despaired < since && o.overdue(l, since) {
			o.violated(I4Losses, "%s has not reported the loss of lsn %d for %v", l.label, h.LSN, time.Duration(o.world.now-since))
		}
		return
	}
}
