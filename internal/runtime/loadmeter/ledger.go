package loadmeter

import (
	"math"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/hotkeys"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// memory is the time constant of all averages: the weight of work decays by a factor of e in this time.
const memory = 15 * time.Second

// heaviest is the size of the summary of keys. It contains every key with more than 0.2 % of the work.
const heaviest = 512

// An account has the averages of a cell.
type account struct {
	// work is the average work per second, counting 0 for the time before the cell was granted.
	work float64
	// known is the weight of the time since the cell was granted: 1 - e^(-age / memory). So work / known is
	// the average since then.
	known float64
}

// A ledger has the average work of each cell and of the heaviest keys. It is pure: the time is an argument.
// It is not safe for concurrent use.
type ledger struct {
	at       mono.Instant
	gain     float64 // increment of an average per unit of weight
	layout   layout
	accounts []account // one for each cell
	keys     *hotkeys.Summary

	// The averages of all entries: their weight, and their number.
	weight, entries float64
}

func newLedger(now mono.Instant) ledger {
	return ledger{at: now, gain: 1 / memory.Seconds(), keys: hotkeys.New(heaviest)}
}

// advance decays all averages to an instant. Samples that are entered next are distributed evenly over the
// time since the previous call.
func (l *ledger) advance(now mono.Instant) {
	passed := max(0, now.Sub(l.at).Seconds())
	l.at = max(l.at, now)
	fresh := -math.Expm1(-passed / memory.Seconds()) // exact for short times, too
	l.gain = 1 / memory.Seconds()                    // the limit for a time of 0
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

// enter adds a sample. It ignores keys that are not held.
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

// hold converts the averages to the layout of new leases. The work of single keys stays with them; the rest
// of a cell is distributed evenly.
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

// post adds to the work of the cell of a key, with a minimum of 0.
func (l *ledger) post(key leasehold.Key, work float64) {
	if cell, ok := l.layout.find(key); ok {
		a := &l.accounts[cell]
		a.work = max(0, a.work+work)
	}
}

// spread distributes the accounts of the current cells to those of another layout. Both are sorted, so one
// pass over each suffices.
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
