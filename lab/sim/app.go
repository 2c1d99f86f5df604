package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold"
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

// operate starts an operation on some key, if it is ours.
func (o *ownerHost) operate() {
	w := o.world
	key := leasehold.Key(w.Random.Uint64())
	if w.Chance(2) {
		key = fencedKey(w.Random.IntN(fencedKeys))
	}
	lease, ok := o.view.Check(o.clock.At(w.Now), key)
	if !ok || len(o.ops) >= 8 {
		return
	}
	op := &operation{epoch: o.epoch, key: key, lease: lease, checked: w.Now}
	if key == fencedKey(int(key>>60)) {
		o.write(op)
	}
	o.ops = append(o.ops, op)
	w.Later(w.nemesis.span(0, 6*time.Second), o.endpoint, 0, op)
}

// write reads the state of a key and writes it anew. What was written under an
// older generation is worth nothing.
func (o *ownerHost) write(op *operation) {
	found := o.state[op.key]
	if found.generation < op.lease.Generation {
		found = record{}
	}
	o.world.oracle.read(o, op.key, found.version)
	o.world.oracle.risen(o, op.key, found)
	t := o.world.oracle.truth(o.space)
	t.version++
	op.version = t.version
	o.state[op.key] = record{op.version, op.lease.Generation, len(t.history)}
}

func (o *ownerHost) finishOperation(op *operation) {
	w := o.world
	if op.epoch != o.epoch {
		return
	}
	for i := range o.ops {
		if o.ops[i] == op {
			o.ops = append(o.ops[:i], o.ops[i+1:]...)
			break
		}
	}
	held := o.view.Held(o.clock.At(w.Now), op.key, op.lease.Generation)
	if held {
		w.oracle.held(o, op)
		if op.version > 0 {
			w.oracle.acknowledged(o, op)
		}
	}
	w.oracle.write(o, op, held)
}
