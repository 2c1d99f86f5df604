package flease

import (
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// A Result is the result for one resource of [Node.TryAcquireAll].
type Result struct {
	Lease *Lease // nil after an error
	Err   error  // a [*HeldError] if another call or member holds the lease
}

// window bounds the requests of a batch in flight, to all members together. More would
// not be faster, and might overflow the receivers' buffers: lost requests are retried
// only after a timeout. The larger the group, the fewer resources are in flight, since
// more members send.
const window = 4096

// A task is the operation of a batch.
type task uint8

const (
	toHold task = iota
	toTry
	toRelease
)

// A batch is one call for one or more resources. All fields but done are guarded by the
// node's lock until done is closed.
type batch struct {
	task    task
	number  uint64 // of the batch, in the node
	names   []string
	entries []*entry // of the started names
	leases  []*Lease // of toRelease
	results []Result
	fresh   []entry // preallocated for the next names

	failed error // of the first failed claim of a toHold
	begun  int   // started claims
	ended  int
	load   int           // requests in flight
	queued bool          // in requests.pending
	done   chan struct{} // closed when all claims have ended
}

func (b *batch) over() bool { return b.ended == len(b.results) }

// weight returns the number of requests for one resource. It does not change between its
// start and its end.
func (b *batch) weight(place int) int {
	var e *entry
	if b.task == toRelease {
		e = b.leases[place].entry
	} else {
		e = b.entries[place]
	}
	if e == nil {
		return 0
	}
	return max(1, e.stake.Peers)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A claim is one resource of a batch.
type claim struct {
	batch *batch
	place int
}

// end records the result of a claim.
func (n *Node) end(c claim, r Result) {
	b := c.batch
	b.results[c.place] = r
	b.ended++
	b.load -= b.weight(c.place)
	if r.Err != nil && b.task == toHold && b.failed == nil {
		b.failed = r.Err
	}
	switch {
	case b.over():
		n.deferred.wake = append(n.deferred.wake, b)
	case !b.queued:
		b.queued = true
		n.requests.pending = append(n.requests.pending, b)
	}
}

// advance starts claims of a batch up to the window. If one claim of a toHold has
// failed, it cancels the others.
func (n *Node) advance(now machine.Time, b *batch) {
	b.queued = false
	if b.failed != nil {
		n.cancel(now, b, func(string) error { return b.failed })
		return
	}
	for b.begun < len(b.results) && b.load < window {
		if b.task != toRelease && b.begun%machine.Ahead == 0 {
			n.machine.Expect(b.names[b.begun:min(len(b.names), b.begun+machine.Ahead)])
		}
		c := claim{b, b.begun}
		b.begun++
		if b.task == toRelease {
			n.releaseClaim(now, c)
		} else {
			n.addClaim(now, c)
		}
		b.load += b.weight(c.place)
	}
}

// cancel ends the remaining claims of a batch.
func (n *Node) cancel(now machine.Time, b *batch, why func(name string) error) {
	for i := range b.begun {
		if r := &b.results[i]; r.Lease == nil && r.Err == nil {
			n.withdraw(now, claim{b, i}, why)
		}
	}
	for b.begun < len(b.results) {
		c := claim{b, b.begun}
		b.begun++
		n.end(c, Result{Err: why(b.names[c.place])})
	}
}
