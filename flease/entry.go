package flease

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// An entry is what this process has to do with a resource: it has a lease of it,
// or somebody wants one, or the members are being told that it has been released.
// The machine has a bid for the resource as long as there is an entry, on behalf
// of the first claim, and the entry is the bid's tag.
type entry struct {
	name   string
	place  int // in the node's list
	stake  machine.Stake
	lease  *Lease
	by     uint64  // the number of the batch that got the lease
	claims []claim // who wants it next, in order
	gone   []claim // who waits for the members to know of a release

	// Room for what is rarely more than one: an entry and its lease are one object.
	room  [1]claim // of claims
	first Lease
}

// entriesAtOnce is how many entries of a batch are made at a time, at most. Whoever
// keeps a lease of one keeps them all in memory, some 200 bytes each.
const entriesAtOnce = 32

// newEntry makes an entry for the claim of a batch.
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

// drop ends an entry.
func (n *Node) drop(e *entry) {
	last := len(n.requests.entries) - 1
	n.requests.entries[e.place] = n.requests.entries[last]
	n.requests.entries[e.place].place = e.place
	n.requests.entries[last] = nil
	n.requests.entries = n.requests.entries[:last]
}

// entry returns what we have to do with a resource; nil if nothing.
func (n *Node) entry(name string) *entry {
	e, _ := n.machine.Tag(name).(*entry)
	return e
}

// enter wants a resource for a claim, after those who are there already. A try
// does not wait for them.
func (n *Node) enter(now machine.Time, c claim) {
	b, name := c.batch, c.batch.names[c.place]
	e := n.entry(name)
	switch {
	case n.life.closing:
		n.end(c, Result{Err: errClosed(opAcquire, name)})
		return
	case e == nil:
		e = n.newEntry(b, name)
	case e.named(b):
		n.end(c, Result{Err: leasehold.Errorf(opAcquire, leasehold.ErrInvalid, name, "named twice in one call, which would wait for itself")})
		return
	case b.task == toTry && (e.lease != nil || len(e.claims) > 0):
		n.end(c, Result{Err: n.ourOwn(e)})
		return
	}
	b.entries[c.place] = e
	e.claims = append(e.claims, c)
	if e.lease == nil && len(e.claims) == 1 {
		n.ask(now, e)
	}
}

// named reports whether a batch has had the resource before.
func (e *entry) named(b *batch) bool {
	return e.lease != nil && e.by == b.number || slices.ContainsFunc(e.claims, func(c claim) bool { return c.batch == b })
}

// ourOwn says that this very process is in the way.
func (n *Node) ourOwn(e *entry) error {
	held := &HeldError{Resource: e.name, Holder: n.cfg.Self, Waiting: e.lease == nil}
	if e.lease != nil {
		held.Fence, held.Until = e.lease.fence, e.lease.Until()
	}
	return held
}

// ask has the machine work for the first claim of an entry. An entry without any
// is dropped when the machine has no more to do for it either.
func (n *Node) ask(now machine.Time, e *entry) {
	for len(e.claims) > 0 {
		stake, err := n.machine.Bid(now, e.name, e.claims[0].batch.task == toTry, e)
		if err == nil {
			e.stake = stake
			return
		}
		n.end(e.shift(), Result{Err: err})
	}
	n.drop(e)
}

// shift takes the first claim from the queue.
func (e *entry) shift() claim {
	first := e.claims[0]
	e.claims = slices.Delete(e.claims, 0, 1)
	return first
}

// withdraw ends a claim that has not come to its turn, or not to its end.
func (n *Node) withdraw(now machine.Time, c claim, why func(name string) error) {
	e := c.batch.entries[c.place]
	place := slices.Index(e.claims, c)
	e.claims = slices.Delete(e.claims, place, place+1)
	n.end(c, Result{Err: why(e.name)})
	switch {
	case place > 0 || e.lease != nil:
	case len(e.claims) > 0:
		n.ask(now, e) // the machine may have tried only
	default:
		n.machine.Leave(now, e.stake.Ref, e)
	}
}

// giveUp tells the members that a lease is over, unless it was lost already.
func (n *Node) giveUp(now machine.Time, c claim) {
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
		n.ask(now, e)
	}
}

// acquired gives a lease to the first claim.
func (n *Node) acquired(now machine.Time, e *entry, note *machine.Notice) {
	if len(e.claims) == 0 {
		n.machine.Leave(now, e.stake.Ref, e) // nobody wants it any more
		return
	}
	n.told(e, nil)
	l := &e.first
	if l.node != nil {
		l = new(Lease)
	}
	l.node, l.entry, l.fence, l.sleeps, l.first = n, e, note.Lease.Fence, n.sleeps, note.Lease.Until
	l.until.Store(&l.first)
	first := e.shift()
	e.lease, e.by = l, first.batch.number
	n.counts.Acquired++
	n.end(first, Result{Lease: l})
}

// lost ends a lease that nobody has released. One that was being released when the
// machine dropped it is over for everybody here, but the members do not know.
func (n *Node) lost(now machine.Time, e *entry, why ending) {
	if e.lease == nil {
		n.told(e, untold(e.name))
		if len(e.claims) == 0 {
			n.drop(e)
		}
		return
	}
	n.counts.Lost++
	n.after.lost(e.name, why)
	e.lease.end(why)
	e.lease = nil
	n.changed(e.name)
	n.ask(now, e)
}

// answered handles the end of a try or of a release.
func (n *Node) answered(now machine.Time, e *entry, note *machine.Notice) {
	if e.lease != nil {
		return
	}
	var failure error
	if note.What == machine.Unreachable || note.What == machine.Disputed {
		failure = untold(e.name)
	}
	n.told(e, failure)
	if len(e.claims) == 0 {
		n.drop(e)
		return
	}
	if note.What == machine.Released || e.claims[0].batch.task != toTry {
		return // the machine goes on
	}
	var err error
	switch note.What {
	case machine.Refused:
		err = &HeldError{Resource: note.Name, Holder: ID(note.Holder), Fence: note.Fence, Until: timeOf(note.Until)}
	case machine.Disputed:
		err = leasehold.Errorf(opAcquire, leasehold.ErrUnavailable, e.name, "members disagree on who has it, or others were faster time and again: try again")
	default:
		err = leasehold.Errorf(opAcquire, leasehold.ErrUnavailable, e.name, "too few members of its group answer")
	}
	n.end(e.shift(), Result{Err: err})
	n.ask(now, e)
}

// told ends the waiting of those who have released the resource.
func (n *Node) told(e *entry, err error) {
	for _, c := range e.gone {
		n.end(c, Result{Err: err})
	}
	e.gone = nil
}

func untold(name string) error {
	return leasehold.Errorf(opRelease, leasehold.ErrUnavailable, name, "too few members were told: it is free when the lease has run out")
}
