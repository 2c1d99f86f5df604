package flease

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// An entry is a resource that this process uses: it holds the lease, calls wait for it,
// or a release is being sent. While there is an entry, the machine has a bid for the
// resource on behalf of the first claim, and the entry is the bid's tag.
type entry struct {
	name   string
	place  int // in the node's list
	stake  machine.Stake
	lease  *Lease
	by     uint64  // the number of the batch that acquired the lease
	claims []claim // the queue of waiting claims
	gone   []claim // releases that wait for acks

	// Preallocated: an entry, its first claim and its first lease are one allocation.
	room  [1]claim // of claims
	first Lease
}

// entriesAtOnce is how many entries of a batch are allocated together. One lease keeps
// all of them in memory, about 200 bytes each.
const entriesAtOnce = 32

// newEntry creates an entry for a claim of a batch.
func (n *Node) newEntry(b *batch, name string) *entry {
	if len(b.fresh) == 0 {
		b.fresh = make([]entry, min(entriesAtOnce, len(b.names)-b.begun+1))
	}
	e := &b.fresh[0]
	b.fresh = b.fresh[1:]
	e.name, e.place = name, len(n.requests.entries)
	e.claims = e.room[:0]
	n.requests.entries = append(n.requests.entries, e)
	return e
}

// removeEntry removes an entry.
func (n *Node) removeEntry(e *entry) {
	last := len(n.requests.entries) - 1
	n.requests.entries[e.place] = n.requests.entries[last]
	n.requests.entries[e.place].place = e.place
	n.requests.entries[last] = nil
	n.requests.entries = n.requests.entries[:last]
}

// entry returns the entry of a resource, or nil.
func (n *Node) entry(name string) *entry {
	e, _ := n.machine.Tag(name).(*entry)
	return e
}

// addClaim appends a claim to the queue of its resource. A try fails instead of waiting
// behind others.
func (n *Node) addClaim(now machine.Time, c claim) {
	b, name := c.batch, c.batch.names[c.place]
	e := n.entry(name)
	switch {
	case n.life.closing:
		n.end(c, Result{Err: errClosed(opAcquire, name)})
		return
	case e == nil:
		e = n.newEntry(b, name)
	case e.requestedBy(b):
		n.end(c, Result{Err: leasehold.Errorf(opAcquire, leasehold.ErrInvalid, name, "duplicate in one call, which would deadlock")})
		return
	case b.task == toTry && (e.lease != nil || len(e.claims) > 0):
		n.end(c, Result{Err: n.heldBySelf(e)})
		return
	}
	b.entries[c.place] = e
	e.claims = append(e.claims, c)
	if e.lease == nil && len(e.claims) == 1 {
		n.bid(now, e)
	}
}

// requestedBy reports whether a batch has a claim or lease of the resource.
func (e *entry) requestedBy(b *batch) bool {
	return e.lease != nil && e.by == b.number || slices.ContainsFunc(e.claims, func(c claim) bool { return c.batch == b })
}

// heldBySelf returns the error of a try for a resource that this process holds or waits
// for.
func (n *Node) heldBySelf(e *entry) error {
	held := &HeldError{Resource: e.name, Holder: n.cfg.Self, Waiting: e.lease == nil}
	if e.lease != nil {
		held.Fence, held.Until = e.lease.fence, e.lease.Until()
	}
	return held
}

// bid starts a bid of the machine for the first claim of an entry. It removes an entry
// without claims.
func (n *Node) bid(now machine.Time, e *entry) {
	for len(e.claims) > 0 {
		stake, err := n.machine.Bid(now, e.name, e.claims[0].batch.task == toTry, e)
		if err == nil {
			e.stake = stake
			return
		}
		n.end(e.shift(), Result{Err: err})
	}
	n.removeEntry(e)
}

// shift takes the first claim from the queue.
func (e *entry) shift() claim {
	first := e.claims[0]
	e.claims = slices.Delete(e.claims, 0, 1)
	return first
}

// withdraw ends a waiting claim.
func (n *Node) withdraw(now machine.Time, c claim, why func(name string) error) {
	e := c.batch.entries[c.place]
	place := slices.Index(e.claims, c)
	e.claims = slices.Delete(e.claims, place, place+1)
	n.end(c, Result{Err: why(e.name)})
	switch {
	case place > 0 || e.lease != nil:
	case len(e.claims) > 0:
		n.bid(now, e) // the first claim may have been a try
	default:
		n.machine.Leave(now, e.stake.Ref, e)
	}
}

// releaseClaim starts to send the release of a lease, unless the lease was lost before.
func (n *Node) releaseClaim(now machine.Time, c claim) {
	l := c.batch.leases[c.place]
	e := l.entry
	if e.lease != l {
		n.end(c, Result{})
		return
	}
	e.lease = nil
	e.gone = append(e.gone, c)
	n.machine.Leave(now, e.stake.Ref, e)
	if len(e.claims) > 0 {
		n.bid(now, e)
	}
}

// acquired completes the first claim with a lease.
func (n *Node) acquired(now machine.Time, e *entry, notice *machine.Notice) {
	if len(e.claims) == 0 {
		n.machine.Leave(now, e.stake.Ref, e) // all claims were withdrawn
		return
	}
	n.endReleases(e, nil)
	l := &e.first
	if l.node != nil {
		l = new(Lease)
	}
	l.node, l.entry, l.fence, l.sleeps, l.first = n, e, notice.Lease.Fence, n.sleeps, notice.Lease.Until
	l.until.Store(&l.first)
	first := e.shift()
	e.lease, e.by = l, first.batch.number
	n.counts.Acquired++
	n.end(first, Result{Lease: l})
}

// lost ends a lost lease. If the machine dropped it during its release, the release
// fails without an ack.
func (n *Node) lost(now machine.Time, e *entry, why ending) {
	if e.lease == nil {
		n.endReleases(e, errUnacked(e.name))
		if len(e.claims) == 0 {
			n.removeEntry(e)
		}
		return
	}
	n.counts.Lost++
	n.deferred.lost(e.name, why)
	e.lease.end(why)
	e.lease = nil
	n.signal(e.name)
	n.bid(now, e)
}

// handleReply handles the end of a try or of a release.
func (n *Node) handleReply(now machine.Time, e *entry, notice *machine.Notice) {
	if e.lease != nil {
		return
	}
	var failure error
	if notice.What == machine.Unreachable || notice.What == machine.Disputed {
		failure = errUnacked(e.name)
	}
	n.endReleases(e, failure)
	if len(e.claims) == 0 {
		n.removeEntry(e)
		return
	}
	if notice.What == machine.Released || e.claims[0].batch.task != toTry {
		return // the machine continues the bid
	}
	var err error
	switch notice.What {
	case machine.Refused:
		err = &HeldError{Resource: notice.Name, Holder: ID(notice.Holder), Fence: notice.Fence, Until: timeOf(notice.Until)}
	case machine.Disputed:
		err = leasehold.Errorf(opAcquire, leasehold.ErrUnavailable, e.name, "too many conflicts with other members' attempts: try again")
	default:
		err = leasehold.Errorf(opAcquire, leasehold.ErrUnavailable, e.name, "too few members of its group reply")
	}
	n.end(e.shift(), Result{Err: err})
	n.bid(now, e)
}

// endReleases completes the pending releases of a resource.
func (n *Node) endReleases(e *entry, err error) {
	for _, c := range e.gone {
		n.end(c, Result{Err: err})
	}
	e.gone = nil
}

func errUnacked(name string) error {
	return leasehold.Errorf(opRelease, leasehold.ErrUnavailable, name, "too few members have acknowledged it: the resource is free when the lease has expired")
}
