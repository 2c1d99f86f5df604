package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/partition"
)

// A record is the state of a key at an owner, stamped with the generation that
// it was written under. Versions rise with every write in the namespace.
type record struct {
	version    uint64
	generation leasehold.Generation
	at         int // how many changes of the table there were when it was written
}

// outgoing is a move at its source, incoming one at its target.
type (
	outgoing struct{ protocol.Departure }
	incoming struct {
		protocol.Arrival
		records map[leasehold.Key]record // nil until they have come
	}
)

// What happens to a move at its two ends. All but rest and verdict stay in the
// process; those two go over the network, and may be lost there.
type (
	// copied is the exporter having sent what it found while the range is served.
	copied struct {
		epoch  uint32
		ticket protocol.Ticket
		failed bool
	}
	// rest is the last of the state, and with it all of it.
	rest struct {
		from    int32
		ticket  protocol.Ticket
		records map[leasehold.Key]record
	}
	// imported is the importer having read it.
	imported struct {
		epoch  uint32
		ticket protocol.Ticket
		failed bool
	}
	// verdict is the target's answer.
	verdict struct {
		ticket    protocol.Ticket
		confirmed bool
	}
	// impatient is the source having waited long enough.
	impatient struct {
		epoch  uint32
		ticket protocol.Ticket
	}
	// installed is the application having put the state in its place.
	installed struct {
		epoch   uint32
		ticket  protocol.Ticket
		lease   leasehold.Lease
		records map[leasehold.Key]record
		failed  bool
	}
	// weary is an owner that has waited long enough for its leases to be moved.
	weary struct{ epoch uint32 }
)

// simStop is how long a source waits for the target's answer, simInstall how
// long it takes to put state in its place.
const (
	simStop    = 3 * time.Second
	simInstall = 100 * time.Millisecond
)

// upcall is how long a function of the application takes, and whether it fails:
// rarely, or often while the nemesis sees to it. One that hangs is cut off.
func (o *ownerHost) upcall(most time.Duration) (time.Duration, bool) {
	if o.nemesis.upcalls && o.Chance(2) {
		return o.nemesis.span(0, simStop), true
	}
	return o.nemesis.span(0, most), false
}

func (o *ownerHost) carry(a owner.Action) {
	switch a := a.(type) {
	case owner.StartMove:
		o.outgoing[a.Ticket] = &outgoing{a.Departure}
		d, failed := o.upcall(3 * time.Second)
		o.Later(d, o.endpoint, 0, copied{o.epoch, a.Ticket, failed})
	case owner.Stop:
		o.sendRest(a.Ticket)
	case owner.EndMove:
		delete(o.outgoing, a.Ticket)
	case owner.Expect:
		o.incoming[a.Ticket] = &incoming{Arrival: a.Arrival}
	case owner.Confirm:
		in := o.incoming[a.Ticket]
		o.oracle.confirms(o, a.Ticket, in.Range)
		o.answerMove(in, true)
	case owner.Discard:
		if in := o.incoming[a.Ticket]; in != nil {
			delete(o.incoming, a.Ticket)
			o.answerMove(in, false)
		}
	case owner.Install:
		in := o.incoming[a.Ticket]
		delete(o.incoming, a.Ticket)
		d, failed := o.upcall(simInstall)
		o.Later(d, o.endpoint, 0, installed{o.epoch, a.Ticket, a.Lease, in.records, failed})
	case owner.Parted:
		o.Later(time.Millisecond, o.endpoint, 0, weary{o.epoch})
	}
}

// sendRest reads the state of a range that is no longer served, and sends it.
func (o *ownerHost) sendRest(t protocol.Ticket) {
	out := o.outgoing[t]
	records := make(map[leasehold.Key]record)
	for key, r := range o.state {
		if out.Range.Contains(key) && keeps(o.view, key, r.generation) { // what is older is from an earlier tenure
			records[key] = r
		}
	}
	o.Later(simStop, o.endpoint, 0, impatient{o.epoch, t})
	if to := o.space.home[out.To.Session]; to != nil {
		o.send(o.endpoint, to.endpoint, rest{o.endpoint, t, records})
	}
}

func (o *ownerHost) answerMove(in *incoming, confirmed bool) {
	if from := o.space.home[in.From.Session]; from != nil {
		o.send(o.endpoint, from.endpoint, verdict{in.Ticket, confirmed})
	}
}

func (o *ownerHost) handleMove(what any) {
	now := o.now()
	step := func(e owner.Event) { o.do(o.machine.Step(now, e)) }
	switch what := what.(type) {
	case copied:
		switch {
		case what.epoch != o.epoch:
		case what.failed:
			step(owner.GaveUp{Ticket: what.ticket})
		default:
			step(owner.Copied{Ticket: what.ticket})
		}
	case impatient:
		if what.epoch == o.epoch && o.outgoing[what.ticket] != nil {
			o.oracle.resumes(o, what.ticket)
			step(owner.GaveUp{Ticket: what.ticket})
		}
	case rest:
		o.takeIn(what)
	case imported:
		in := o.incoming[what.ticket]
		switch {
		case what.epoch != o.epoch || in == nil:
		case what.failed:
			delete(o.incoming, what.ticket)
			o.answerMove(in, false)
		default:
			step(owner.Imported{Ticket: what.ticket})
		}
	case verdict:
		if what.confirmed {
			step(owner.Confirmed{Ticket: what.ticket})
		} else {
			step(owner.GaveUp{Ticket: what.ticket})
		}
	case installed:
		if what.epoch != o.epoch {
			return
		}
		if !what.failed {
			for key, r := range what.records {
				o.state[key] = record{r.version, max(what.lease.Generation, o.state[key].generation), r.at}
			}
		}
		step(owner.Installed{Ticket: what.ticket, Failed: what.failed})
	case weary:
		if what.epoch == o.epoch {
			step(owner.Leave{})
		}
	}
}

// takeIn hands the state to the importer, if it is expected.
func (o *ownerHost) takeIn(r rest) {
	in := o.incoming[r.ticket]
	if in == nil {
		o.send(o.endpoint, r.from, verdict{r.ticket, false})
		return
	}
	if in.records != nil {
		return // it came twice
	}
	in.records = r.records
	d, failed := o.upcall(500 * time.Millisecond)
	o.Later(d, o.endpoint, 0, imported{o.epoch, r.ticket, failed})
}

// loaded adds what an owner has measured to its request, now and then. It is
// drawn, not measured: what matters is what a policy makes of it. When faults
// stop, loads do no longer change either, so that ranges come to rest.
func (o *ownerHost) loaded(r *protocol.LeaseRequest) *protocol.LeaseRequest {
	if !o.space.balances || o.nemesis.healed || o.Chance(2) {
		return r
	}
	said := *r
	said.Loads = &partition.Loads{}
	for _, l := range r.Leases {
		rate := float64(100 + o.Random.IntN(100))
		if o.Chance(6) {
			rate *= 50
		}
		said.Loads.Cells = append(said.Loads.Cells, partition.Cell{Range: l.Range, Rate: rate})
		said.Load += rate
	}
	if n := len(said.Loads.Cells); n > 0 && o.Chance(3) {
		c := &said.Loads.Cells[o.Random.IntN(n)]
		said.Loads.Hot = []partition.HotKey{{Key: c.Range.Start + leasehold.Key(o.Random.Uint64N(c.Range.Size())), Rate: c.Rate / 2}}
	}
	return &said
}
