package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// An operation is work of an application under a lease: it checks the lease, works for a while, and checks
// with Held that the lease did not end (Centrifuge figure 10). It then writes to a store that checks fencing
// tokens, also if Held is false, like an application that is too slow to call Held.
type operation struct {
	epoch   uint32
	key     leasehold.Key
	lease   leasehold.Lease
	checked int64 // true time
	broken  bool  // the lease has ended since the check
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

// write reads the state of a key and writes the next version. State of an older generation is ignored.
func (o *ownerHost) write(op *operation) {
	found := o.state[op.key]
	if found.generation < op.lease.Generation {
		found = record{}
	}
	o.oracle.checkRead(o, op.key, found.version)
	o.oracle.checkRevived(o, op.key, found)
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
		o.oracle.checkHeld(o, op)
		if op.version > 0 {
			o.oracle.acknowledged(o, op)
		}
	}
	o.oracle.checkWrite(o, op, held)
}

// agentPromise is the longest time for which an agent's client relies on an answer.
const agentPromise = 2 * time.Second

// A reliance is a process that relies on an owner's leases until a deadline. Its clock is the slowest one
// that the drift bound allows.
type reliance struct {
	session leasehold.Session
	leases  []leasehold.Lease
	end     int64 // true time
}

type promises struct {
	until   mono.Instant // on the owner's clock
	relying []reliance
	// dropped are leases that it no longer has, but still reports to the leader, because a promise delays
	// their release.
	dropped []leasehold.Lease
}

func (o *ownerHost) promise() {
	now := o.now()
	kept := min(agentPromise, o.view.Until.Sub(now)/2)
	if !o.valid() || kept <= 0 || o.beyond {
		return
	}
	o.promises.until = max(o.promises.until, now.Add(kept))
	counted := int64(float64(kept) / float64(o.view.Drift)) // on the clock of the relying process
	o.promises.relying = append(o.promises.relying, reliance{
		o.holder.Session, o.view.Leases, o.Now + counted*int64(engine.TrueRate)/int64(slowest),
	})
	o.Branches["owner: promised"]++
}

// settlePromise reports to the machine that the promises made before a request have expired, as soon as they have.
func (o *ownerHost) settlePromise(number uint64, until mono.Instant) {
	if o.now() < until {
		o.Branches["owner: held back for a promise"]++
		o.complete(time.Duration(o.clock.When(until)-o.Now), "settling", func() { o.settlePromise(number, until) })
		return
	}
	o.promises.dropped = nil
	o.step(owner.Settled{Number: number})
}

// checkReliance is I1 for processes that rely on an answer: no other owner's check of a key succeeds while
// such a process may act on it. This also holds after the owner that answered has crashed.
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
				o.Violated(I1Exclusive, "%s (%v) checks %v while a client of %s relies on %v", a.label, a.holder, la, b.label, lb)
			}
		}
		b.promises.relying = kept
	}
}
