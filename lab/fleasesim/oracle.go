package fleasesim

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// The invariants that the simulator checks.
const (
	L1Exclusive engine.Invariant = "L1 exclusive" // at most one process holds a lease
	L2Told      engine.Invariant = "L2 told"      // reports of another holder are true
	L3Released  engine.Invariant = "L3 released"  // a released lease is not held
	L4Fences    engine.Invariant = "L4 fences"    // fences rise
	L5Progress  engine.Invariant = "L5 progress"  // wanted resources are held soon after faults end
	L6Bounded   engine.Invariant = "L6 bounded"   // memory is bounded, and unused state is removed
	L7Kept      engine.Invariant = "L7 kept"      // without faults, no lease is lost, and tries are answered
	L8Twins     engine.Invariant = "L8 twins"     // a process with a twin gives way or stays, and no other is mistaken for a twin
)

// An oracle has the state of all processes, and true time. Its checks are in check.go.
type oracle struct {
	*world
	safe   bool // leases are exclusive
	fenced bool // fences rise
	parted bool // there were twins, and one of them gave way long ago
	truths []truth
}

// truth is the true history of a resource.
type truth struct {
	tenures []tenure // in the order in which they began
	reports []report
}

type tenure struct {
	by          *process
	incarnation uint64
	fence       uint64
	began       int64
}

func (o *oracle) init(w *world) {
	o.world = w
	o.safe = w.kind != Twins
	o.fenced = o.safe && (w.kind != Mono || !w.nemesis.amnesia)
	o.truths = make([]truth, len(w.resources))
	engine.Zero(w.Checks, L1Exclusive, L2Told, L3Released, L4Fences, L5Progress, L6Bounded, L7Kept, L8Twins)
	for n := flease.Acquired; n <= flease.EqualIDs; n++ {
		engine.Zero(w.Branches, n.String())
	}
}

func (o *oracle) noticed(p *process, n *flease.Notice) {
	o.Branches[n.What.String()]++
	o.Mix(uint64(p.index)<<8|uint64(n.What), n.Fence^n.Lease.Fence)
	if o.Traced() {
		o.Printf("%s: %v %s %s", p.label, n.What, n.Name, o.details(n))
	}
	if n.What == flease.EqualIDs || n.What == flease.GaveWay {
		o.checkTwins(p, n)
	}
	r := o.resource(n.Name)
	if r == nil {
		return
	}
	s := &p.stakes[r.index]
	switch n.What {
	case flease.Acquired, flease.Renewed:
		o.checkReleased(p, r)
		o.granted(p, r, n)
	case flease.Lost:
		o.checkLost(p, r)
		s.held, s.asked, s.tried = false, s.asking, 0
	case flease.Refused:
		o.checkReported(p, r, n)
		o.tryEnded(p, r, n)
	case flease.Unreachable, flease.Disputed:
		o.tryEnded(p, r, n)
	case flease.Changed:
		o.checkSeen(p, r, n)
	case flease.Stopped:
		s.asked, s.tried = nothing, 0
	case flease.Released:
		if s.asked == nothing {
			s.tried = 0
		}
	default: // the other notices are not about requests
	}
}

// answered ends a try without a lease.
func (o *oracle) tryEnded(p *process, r *resource, n *flease.Notice) {
	s := &p.stakes[r.index]
	if s.asked == try {
		o.checkAnswer(p, r, n)
	}
	s.tried = 0
	if s.asked == try {
		s.asked = nothing
	}
}

// granted handles the notice that a process has a lease, or that the lease is renewed.
func (o *oracle) granted(p *process, r *resource, n *flease.Notice) {
	s, t := &p.stakes[r.index], &o.truths[r.index]
	if n.What == flease.Acquired {
		o.checkKept(p, r)
		o.checkRises(p, r, n.Lease.Fence)
		s.since, s.given = o.Now, n.Lease.Fence-1
		t.tenures = append(t.tenures, tenure{p, p.incarnation, n.Lease.Fence, o.Now})
	} else {
		o.checkSame(p, r, n.Lease.Fence)
	}
	s.held, s.lease, s.asked, s.tried = true, n.Lease, hold, 0
	o.checkNews(p, r)
	o.checkExclusive(p, r)
}

// clockChanged handles a change of a clock, which may end a lease or make it valid again.
func (o *oracle) clockChanged(p *process) {
	for _, r := range o.resources {
		o.checkExclusive(p, r)
	}
}

func (w *world) details(n *flease.Notice) string {
	switch n.What {
	case flease.Acquired, flease.Renewed, flease.Lost:
		return fmt.Sprintf("fence %d until %v and %.3f", n.Lease.Fence, n.Lease.Until.Mono, w.Seconds(int64(n.Lease.Until.Wall)))
	case flease.Refused, flease.Changed:
		return fmt.Sprintf("p%d fence %d until %.3f", n.Holder, n.Fence, w.Seconds(int64(n.Until)))
	case flease.Released:
		return fmt.Sprintf("fence %d", n.Fence)
	default: // the other notices are about clocks and peers
	}
	if n.Peer != 0 {
		return fmt.Sprintf("p%d by %v", n.Peer, n.By)
	}
	if n.By != 0 {
		return n.By.String()
	}
	return ""
}
