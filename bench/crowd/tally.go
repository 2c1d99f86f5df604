package crowd

import (
	"sync"
	"sync/atomic"
	"time"
)

// A tally counts what happens to a crowd.
type tally struct {
	expired atomic.Int64 // owners whose leases ran out though they lived
	stale   atomic.Int64 // lookups that had no proof for too long
	gaps    atomic.Int64 // lookups that found a change missing, and asked
	repeats atomic.Int64 // questions and requests that were not answered in time
	broken  atomic.Int64 // connections that ended though nobody had ended them
	strange atomic.Int64 // messages that brought nothing
	unheard atomic.Int64 // owners that left, and were not told that this is known

	mu     sync.Mutex
	tables []time.Duration // from a lookup's start to its table
	leases []time.Duration // from an owner's start to its first lease
}

func (t *tally) firstTable(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tables = append(t.tables, took)
}

func (t *tally) firstLease(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leases = append(t.leases, took)
}

// taken returns how long starts have taken since it was last asked.
func (t *tally) taken() (tables, leases []time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tables, leases = t.tables, t.leases
	t.tables, t.leases = nil, nil
	return tables, leases
}

// Counts are what a crowd has counted since it began, and how it is.
type Counts struct {
	Expired, Stale, Gaps, Repeats, Broken, Strange, Unheard int64
	In, Out                                                 int64 // bytes that it has heard and said
	Peak                                                    int64 // the most of them in one second, since the last look

	Holding int     // owners that have a lease
	Share   float64 // of all keys that they have, together
	Proven  int     // lookups that have proof, not too old
	Lowest  uint64  // the last change that all of those have

	// The worst time from a start to the first table, and to the first lease, since
	// it was last asked.
	WorstTable, WorstLease time.Duration
}

// Spurious is how many have lost what they had though nobody had failed.
func (c Counts) Spurious() int64 { return c.Expired + c.Stale }
