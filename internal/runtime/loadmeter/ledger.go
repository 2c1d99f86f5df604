package loadmeter

import (
	"math"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/hotkeys"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// memory is the time constant of all averages: what happened so long ago counts
// e times less than what happens now.
const memory = 15 * time.Second

// heaviest is how many keys are watched: one that has more than 0.2 % of the
// work is among them.
const heaviest = 512

// An account is what is known about a cell.
type account struct {
	// work is the average of the work per second, with nothing for the time
	// before the cell was held.
	work float64
	// known is the share of the average that the cell was held: 1 - e^(-age /
	// memory), since it was granted. So work / known is the average since then.
	known float64
}

// A ledger has averages of the work on each cell and on the heaviest keys. It is
// pure: time comes as an argument. It is not safe for concurrent use.
type ledger struct {
	at       mono.Instant
	gain     float64 // what an entry adds to an average, per unit of its weight
	layout   layout
	accounts []account // one for each cell
	keys     *hotkeys.Summary

	// The averages of all entries: their weight, and their number.
	weight, entries float64
}

func newLedger(now mono.Instant) ledger {
	return ledger{at: now, gain: 1 / memory.Seconds(), keys: hotkeys.New(heaviest)}
}

// advance lets time pass. What is entered after it is taken to have happened
// evenly since the last time.
func (l *ledger) advance(now mono.Instant) {
	passed := max(0, now.Sub(l.at).Seconds())
	l.at = max(l.at, now)
	fresh := -math.Expm1(-passed / memory.Seconds()) // exact also if little time has passed
	l.gain = 1 / memory.Seconds()                    // the limit for no time at all
	if passed > 0 {
		l.gain = fresh / passed
	}
	kept := 1 - fresh
	for i := range l.accounts {
		a := &l.accounts[i]
		a.work *= kept
		a.known = a.known*kept + fresh
	}
	l.keys.Decay(kept)
	l.weight *= kept
	l.entries *= kept
}

// enter adds a sample. One of a key that is not held is of no interest.
func (l *ledger) enter(s sample) {
	cell, ok := l.layout.find(s.key)
	if !ok {
		return
	}
	w := s.weight * l.gain
	l.accounts[cell].work += w
	l.keys.Add(s.key, w)
	l.weight += w
	l.entries += l.gain
}

// hold takes over what is known to a new layout. Within a cell, what is known
// about single keys stays with them, and the rest is spread evenly.
func (l *ledger) hold(leases []leasehold.Lease) {
	for c := range l.keys.All() {
		l.post(c.Key, -c.Least())
	}
	next := cut(leases)
	l.layout, l.accounts = next, l.spread(next)
	l.keys.Retain(func(key leasehold.Key) bool {
		_, held := l.layout.find(key)
		return held
	})
	for c := range l.keys.All() {
		l.post(c.Key, c.Least())
	}
}

// post adds to the work of the cell that has the key, which is not below 0.
func (l *ledger) post(key leasehold.Key, work float64) {
	if cell, ok := l.layout.find(key); ok {
		a := &l.accounts[cell]
		a.work = max(0, a.work+work)
	}
}

// spread returns what the present cells know about the keys of other ones. Both
// are sorted, so that one walk along each is enough.
func (l *ledger) spread(next layout) []account {
	type span struct {
		cell        int
		first, last leasehold.Key
	}
	olds := make([]span, 0, l.layout.cells())
	l.layout.each(func(cell int, first, last leasehold.Key) { olds = append(olds, span{cell, first, last}) })
	out := make([]account, next.cells())
	next.each(func(cell int, first, last leasehold.Key) {
		for len(olds) > 0 && olds[0].last < first {
			olds = olds[1:]
		}
		for _, old := range olds {
			if old.first > last {
				break
			}
			both := size(max(first, old.first), min(last, old.last))
			out[cell].work += l.accounts[old.cell].work * both / size(old.first, old.last)
			out[cell].known += l.accounts[old.cell].known * both / size(first, last)
		}
	})
	return out
}

// size is the number of keys from first to last.
func size(first, last leasehold.Key) float64 { return float64(last-first) + 1 }
