package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
)

// A tenure is the period in which a session is known to have held a key under a generation.
type tenure struct {
	session    leasehold.Session
	generation leasehold.Generation
	began      oracle.Time // no later than this
	ended      oracle.Time // no earlier than this
	resumed    oracle.Time // when it was held again after its last gap, no later than this; began without a gap

	misreported bool // a caller has received its loss too early
}

// A holder is the session with a generation.
type holder struct {
	session leasehold.Session
	owner   string
}

// Observe adds a record of an owner.
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

// note checks that a generation is of one grant to one session, for all keys (I2).
func (b *Book) note(owner string, r oracle.Record) {
	h, ok := b.holders[r.Generation]
	if !ok {
		b.holders[r.Generation] = holder{r.Session, owner}
		return
	}
	if h.session != r.Session {
		b.add("I2", "a generation was granted twice", "generation %d was granted to session %s of %s and to session %s of %s",
			r.Generation, h.session.Short(), h.owner, r.Session.Short(), owner)
		b.holders[r.Generation] = holder{r.Session, owner}
	}
}

// judgeTenures adds the violations of the oracle: dual ownership (I1) and generations that did not rise (I2).
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

// handover is the maximum time without an owner while a key is transferred.
const handover = oracle.Time(time.Second)

// Recovery returns the time after since until every key had an owner for good, and the number of keys that
// have none yet (I6). An owner counts if it holds the key at the time lasting, when all earlier leases have
// expired. A key that was held all the time, or transferred, took no time.
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

// owned returns the time since when a key has had an owner without a gap.
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

// Unrecovered records that not all keys had an owner in time (I6).
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

// Vanished records the loss of a namespace. Managers without a store may lose it only if all were down (I2).
func (b *Book) Vanished(when string, blank int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add("I2", "the namespace was gone", "%s the namespace was gone, and %d managers had been restarted", when, blank)
}

// Unanswered returns the number of registers, for each running caller, without an answer since a time. It
// detects a lookup that is stuck with an old table.
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

// Lost records that callers did not find existing owners (I6).
func (b *Book) Lost(took time.Duration, unanswered int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add("I6", "callers did not find owners", "%v after faults stopped %d registers had not answered a caller, although all had owners", took, unanswered)
}
