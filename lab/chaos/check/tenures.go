package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
)

// A tenure is the time for which a session is known to have held a key under a generation.
type tenure struct {
	session    leasehold.Session
	generation leasehold.Generation
	began      oracle.Time // no later than this
	ended      oracle.Time // no earlier than this
	resumed    oracle.Time // when it was held again after its last gap, no later than this; began if there was none

	misreported bool // it is known that a caller was told too early that it was lost
}

// A holder is who was given a generation.
type holder struct {
	session leasehold.Session
	owner   string
}

// Observe takes up what an owner has written.
func (b *Book) Observe(owner string, r oracle.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.oracle.Observe(r)
	b.note(owner, r)
	known := b.tenures[r.Key]
	at := slices.IndexFunc(known, func(t tenure) bool { return t.session == r.Session && t.generation == r.Generation })
	if at < 0 {
		known = append(known, tenure{session: r.Session, generation: r.Generation, began: r.Check.After, ended: r.Check.Before, resumed: r.Check.After})
		at = len(known) - 1
	}
	t := &known[at]
	if r.Check.Before > t.ended+handover {
		t.resumed = r.Check.After
	}
	t.began, t.ended = min(t.began, r.Check.After), max(t.ended, r.Check.Before, r.Held.Before)
	b.tenures[r.Key] = known
}

// note checks that a generation names one grant to one session, whatever the key (I2).
func (b *Book) note(owner string, r oracle.Record) {
	h, ok := b.holders[r.Generation]
	if !ok {
		b.holders[r.Generation] = holder{r.Session, owner}
		return
	}
	if h.session != r.Session {
		b.add("I2", "a generation was given twice", "generation %d was given to session %s of %s and to session %s of %s",
			r.Generation, h.session.Short(), h.owner, r.Session.Short(), owner)
		b.holders[r.Generation] = holder{r.Session, owner}
	}
}

// judgeTenures adds what the oracle has found: dual ownership (I1) and generations that did not rise (I2).
func (b *Book) judgeTenures(n *Counts) {
	v := b.oracle.Judge()
	n.Tenures, n.Generations = int(v.Tenures), len(b.holders)
	for range v.Duals {
		b.add("I1", "two owners held a key at the same time", "%s", v.First)
	}
	for range v.Reversals {
		b.add("I2", "the generation of a key did not rise", "%s", v.First)
	}
}

// handover is how long a key may be without an owner while it goes from one to another.
const handover = oracle.Time(time.Second)

// Recovery returns how long after a time it took until every key had an owner for good, and how many keys
// have none yet (I6). An owner counts if it holds the key at the time lasting, when all leases from before
// have expired. A key that was held all the time, or handed over, took no time.
func (b *Book) Recovery(since, lasting oracle.Time) (slowest time.Duration, without int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range b.keys {
		from, owned := b.owned(key, lasting)
		if !owned {
			without++
		}
		slowest = max(slowest, time.Duration(from-since))
	}
	return slowest, without
}

// owned returns since when a key has had an owner without a gap.
func (b *Book) owned(key leasehold.Key, lasting oracle.Time) (from oracle.Time, owned bool) {
	known := slices.SortedFunc(slices.Values(b.tenures[key]), func(x, y tenure) int { return cmp.Compare(y.ended, x.ended) })
	for _, t := range known {
		switch {
		case t.ended >= lasting && !owned:
			from, owned = t.resumed, true
		case owned && t.ended >= from-handover:
			from = min(from, t.resumed)
		}
	}
	return from, owned
}

// Unrecovered notes that the keys did not all have an owner in time (I6).
func (b *Book) Unrecovered(took, bound time.Duration, without int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	const broken = "keys had no owner in time"
	if without > 0 {
		b.add("I6", broken, "%d keys have no owner %v after faults stopped, and should have had one after %v", without, took, bound)
		return
	}
	b.add("I6", broken, "the last key had an owner %v after faults stopped, and should have had one after %v", took, bound)
}

// Vanished notes that a namespace was gone, which only managers without a store that all died may lose (I2).
func (b *Book) Vanished(when string, blank int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add("I2", "the namespace was gone", "%s the namespace was gone, and %d managers had been started again", when, blank)
}

// Unanswered counts the registers, for each living caller, without an answer since a time. It finds a
// lookup that is stuck with an old table.
func (b *Book) Unanswered(since oracle.Time, names []string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.callers {
		for _, name := range names {
			if !c.gone && c.answered[name] < since {
				n++
			}
		}
	}
	return n
}

// Lost notes that callers did not find owners that there were (I6).
func (b *Book) Lost(took time.Duration, unanswered int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add("I6", "callers did not find owners", "%v after faults stopped %d registers had not answered a caller, although all had owners", took, unanswered)
}
