package flease

import (
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// A Result is what became of one resource of a [Node.TryAcquireAll].
type Result struct {
	Lease *Lease // nil if there was an error
	Err   error  // a [*HeldError] if another has it
}

// window is how many questions of a batch are under way at a time, to all members
// together. More would not be faster, and might be more than the receivers have
// room for: what is lost is sent again only after a while. In larger groups there
// are more who ask, so each has fewer resources under way.
const window = 4096

// A task is what a batch wants of each of its resources.
type task uint8

const (
	toHold task = iota
	toTry
	toRelease
)

// A batch is what one call wants, of one resource or of many. All but done is
// guarded by the node's lock until done is closed.
type batch struct {
	task    task
	number  uint64 // of the batch, in the node
	names   []string
	entries []*entry // of the names that have begun
	leases  []*Lease // that are to be released; else nil
	results []Result
	fresh   []entry // for the next names

	failed error // of the first of a toHold that cannot be had
	begun  int   // so many of the names
	ended  int
	load   int           // questions under way
	queued bool          // is in the node's list of those that may go on
	done   chan struct{} // closed when all have ended
}

func (b *batch) over() bool { return b.ended == len(b.results) }

// weight is how many questions one of the resources takes. It is the same when it
// ends as it was after it had begun.
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

// end records what became of a claim.
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
		n.after.wake = append(n.after.wake, b)
	case !b.queued:
		b.queued = true
		n.requests.pending = append(n.requests.pending, b)
	}
}

// advance begins as much of a batch as may be under way. If one of all that are
// wanted cannot be had, the others are of no use.
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
			n.giveUp(now, c)
		} else {
			n.enter(now, c)
		}
		b.load += b.weight(c.place)
	}
}

// cancel ends what is left of a batch.
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
