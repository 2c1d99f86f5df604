// Package oracle checks the guarantees of Leasehold in a running cluster, independently of the managers.
//
// For dual ownership and generations every owner checks its keys periodically (a [Sentinel]) and records
// the successful checks (a [Record]), with times of a clock that all processes of a computer share. An
// [Oracle] compares the records.
//
// For services that store values, [Registers] is a history of requests, and [RegisterModel] the model for a
// linearizability checker.
package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/leasehold-dev/leasehold"
)

// An Oracle compares the times at which owners held each key.
//
// A tenure is the time for which one session held a key with one generation. Its records have successful
// calls, each at an instant between the start and the end of the call. So the tenure began no later than
// the end of the first call, and ended no earlier than the start of the last one. Two tenures of a key
// overlap if each began, in this sense, no later than the other ended. Overlaps that are possible but not
// certain do not count.
//
// It is safe for concurrent use. It keeps the last few tenures per key, for a bounded number of keys.
type Oracle struct {
	maxKeys int

	mu   sync.Mutex
	keys map[leasehold.Key][]tenure
	Verdict
}

// A Verdict is the result of an oracle so far.
type Verdict struct {
	Checked   uint64 // records of operations
	Tenures   uint64
	Duals     uint64 // tenures that overlap with one of another session
	Reversals uint64 // tenures that continue after one with a higher generation began, or have the same generation
	Unjudged  uint64 // records of keys above the limit
	First     string // the first violation; empty if none
}

type tenure struct {
	session    leasehold.Session
	generation leasehold.Generation
	began      Time // no later than this
	ended      Time // no earlier than this
	dual       bool // has been counted
	reversed   bool // has been counted
}

// maxTenures is the maximum number of tenures per key. A key moves at most a few times per minute, and
// records are late by milliseconds.
const maxTenures = 8

// New returns an oracle for at most maxKeys keys.
func New(maxKeys int) *Oracle {
	return &Oracle{maxKeys: maxKeys, keys: make(map[leasehold.Key][]tenure)}
}

// Observe processes a record. Records may arrive in any order.
func (o *Oracle) Observe(r Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.About == Operation {
		o.Checked++
	}
	known, ok := o.keys[r.Key]
	if !ok && len(o.keys) == o.maxKeys {
		o.Unjudged++
		return
	}
	at := slices.IndexFunc(known, func(t tenure) bool { return t.session == r.Session && t.generation == r.Generation })
	if at < 0 {
		known = append(known, tenure{session: r.Session, generation: r.Generation, began: r.Check.After, ended: r.Check.Before})
		at = len(known) - 1
		o.Tenures++
	}
	known[at].extend(r.Check)
	if r.Held != (Span{}) {
		known[at].extend(r.Held)
	}
	for i := range known {
		if i != at {
			o.compare(r.Key, &known[at], &known[i])
		}
	}
	o.keys[r.Key] = evict(known)
}

// evict removes the tenure that ended first if there are too many.
func evict(known []tenure) []tenure {
	if len(known) <= maxTenures {
		return known
	}
	oldest := slices.MinFunc(known, func(a, b tenure) int { return cmp.Compare(a.ended, b.ended) })
	i := slices.Index(known, oldest)
	return slices.Delete(known, i, i+1)
}

func (t *tenure) extend(call Span) {
	t.began = min(t.began, call.After)
	t.ended = max(t.ended, call.Before)
}

func (t *tenure) overlaps(u *tenure) bool { return t.began <= u.ended && u.began <= t.ended }

func (o *Oracle) compare(key leasehold.Key, a, b *tenure) {
	if a.generation < b.generation {
		a, b = b, a
	}
	switch {
	case a.session != b.session && a.overlaps(b):
		if !a.dual || !b.dual {
			o.Duals++
			o.note(key, "two sessions held it at the same time", a, b)
		}
		a.dual, b.dual = true, true
	case a.generation == b.generation || a.began <= b.ended: // b has the lower one, and was held after a began
		if !b.reversed {
			o.Reversals++
			o.note(key, "a generation was followed by one that is not higher", a, b)
		}
		b.reversed = true
	}
}

func (o *Oracle) note(key leasehold.Key, what string, a, b *tenure) {
	if o.First != "" {
		return
	}
	o.First = fmt.Sprintf("key %v: %s: session %s, generation %d, from %d to %d; session %s, generation %d, from %d to %d",
		key, what, a.session.Short(), a.generation, a.began, a.ended, b.session.Short(), b.generation, b.began, b.ended)
}

// Judge returns the result so far.
func (o *Oracle) Judge() Verdict {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Verdict
}
