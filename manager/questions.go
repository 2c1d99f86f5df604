package manager

import (
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/machine/node"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
)

// questions are those of one lookup. Only the newest counts: a lookup that is not answered soon
// asks again, and makes nothing of an answer to what it asked before. So one waits for the
// machine at most, and is the newest when its turn comes. Without that, a manager that is late
// would have ever more to answer, to those who no longer want to know.
type questions struct {
	mu     sync.Mutex
	newest *protocol.LookupRequest // nil if it was handed over
	heard  mono.Instant            // when it last asked
	lsn    leasehold.LSN           // the last change that it had then
	behind uint64                  // how many it lacked
}

// ask takes a question, in place of the one that waits, and reports whether none did: then the
// machine is to be told that there is one.
func (q *questions) ask(now mono.Instant, r *protocol.LookupRequest) (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first = q.newest == nil
	q.newest, q.heard, q.lsn = r, now, r.LSN
	return first
}

// next hands over the question that waits.
func (q *questions) next() node.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.newest
	q.newest = nil
	return node.Lookup{LookupRequest: r}
}

// answered notes how much the lookup lacked of what it is answered with.
func (q *questions) answered(lsn leasehold.LSN) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.behind = 0
	if lsn > q.lsn {
		q.behind = uint64(lsn - q.lsn)
	}
}

// figures returns when the lookup last asked, the last change that it had then, and how many it
// lacked.
func (q *questions) figures() (heard mono.Instant, lsn leasehold.LSN, behind uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.heard, q.lsn, q.behind
}
