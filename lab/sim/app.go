package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// An operation is what an application does under a lease: it checks, works for
// a while, and asks whether it held the lease all along (Centrifuge figure 10).
// Whatever the answer, it then writes to a store that checks fencing tokens,
// as an application that was too slow to ask would.
type operation struct {
	epoch   uint32
	key     leasehold.Key
	lease   leasehold.Lease
	checked int64 // true time
	broken  bool  // the oracle has seen the lease end
	version uint64
}

func (o *ownerHost) operate() {
	key := leasehold.Key(o.Random.Uint64())
	if o.Chance(2) {
		key = fencedKey(o.Random.IntN(fencedKeys))
	}
	lease, ok := o.view.Check(o.now(), key)
	if !ok || len(o.ops) >= 8 {
		return
	}
	op := &operation{epoch: o.epoch, key: key, lease: lease, checked: o.Now}
	if key == fencedKey(int(key>>60)) {
		o.write(op)
	}
	o.ops = append(o.ops, op)
	o.Later(o.nemesis.span(0, 6*time.Second), o.endpoint, 0, op)
}

// write reads the state of a key and writes it anew. What was written under an
// older generation is worth nothing.
func (o *ownerHost) write(op *operation) {
	found := o.state[op.key]
	if found.generation < op.lease.Generation {
		found = record{}
	}
	o.oracle.read(o, op.key, found.version)
	o.oracle.risen(o, op.key, found)
	t := o.oracle.truth(o.space)
	t.version++
	op.version = t.version
	o.state[op.key] = record{op.version, op.lease.Generation, len(t.history)}
}

func (o *ownerHost) finishOperation(op *operation) {
	if op.epoch != o.epoch {
		return
	}
	for i := range o.ops {
		if o.ops[i] == op {
			o.ops = append(o.ops[:i], o.ops[i+1:]...)
			break
		}
	}
	held := o.view.Held(o.now(), op.key, op.lease.Generation)
	if held {
		o.oracle.held(o, op)
		if op.version > 0 {
			o.oracle.acknowledged(o, op)
		}
	}
	o.oracle.write(o, op, held)
}

// agentPromise is the longest time for which somebody relies on an answer.
const agentPromise = 2 * time.Second

// A reliance is somebody who was told by an owner what it holds, and for how long that
// stays true: a process of its own, with the slowest clock that there may be.
type reliance struct {
	session leasehold.Session
	leases  []leasehold.Lease
	end     int64 // true time
}

type promises struct {
	until   mono.Instant // on the owner's clock
	relying []reliance
	// dropped is what it no longer has, and has not said so: it is on its way to the
	// next owner.
	dropped []leasehold.Lease
}

func (o *ownerHost) promise() {
	now := o.now()
	kept := min(agentPromise, o.view.Until.Sub(now)/2)
	if !o.valid() || kept <= 0 || o.beyond {
		return
	}
	o.promises.until = max(o.promises.until, now.Add(kept))
	counted := int64(float64(kept) / float64(o.view.Drift)) // on the other's clock
	o.promises.relying = append(o.promises.relying, reliance{
		o.holder.Session, o.view.Leases, o.Now + counted*int64(engine.TrueRate)/int64(slowest),
	})
	o.Branches["owner: promised"]++
}

// settle lets the machine go on when no promise is older than a number.
func (o *ownerHost) settle(number uint64, until mono.Instant) {
	if o.now() < until {
		o.Branches["owner: held back for a promise"]++
		o.complete(time.Duration(o.clock.When(until)-o.Now), "settling", func() { o.settle(number, until) })
		return
	}
	o.promises.dropped = nil
	o.step(owner.Settled{Number: number})
}

// checkReliance is I1 for those who rely on an answer: nobody else's check of a key
// succeeds while somebody may act on it because of what the owner has told him. It does
// not matter whether that owner still lives.
func (o *oracle) checkReliance(a *ownerHost) {
	if !o.cfg.Agents || !a.valid() || a.beyond {
		return
	}
	for _, b := range a.space.owners {
		if b.beyond || b.asleep {
			continue
		}
		kept := b.promises.relying[:0]
		for _, r := range b.promises.relying {
			if r.end <= o.Now {
				continue
			}
			kept = append(kept, r)
			if r.session == a.holder.Session {
				continue
			}
			o.Checks[I1Exclusive]++
			if la, lb, found := overlap(a.view.Leases, r.leases); found {
				o.Violated(I1Exclusive, "%s (%v) checks %v while somebody relies on %v, which %s has told him", a.label, a.holder, la, lb, b.label)
			}
		}
		b.promises.relying = kept
	}
}
