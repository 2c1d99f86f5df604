package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/partition"
)

// A record is the state of a key at an owner, with the generation that it was written under. Each write in
// the namespace has a higher version.
type record struct {
	version    uint64
	generation leasehold.Generation
	at         int // number of changes of the table before the write
}

// outgoing is a move at its source, incoming one at its target.
type (
	outgoing struct{ protocol.Departure }
	incoming struct {
		protocol.Arrival
		records map[leasehold.Key]record // nil until received
	}
)

// Messages between the source and the target of a move. The network may lose them.
type (
	// finalState is the last part of the state; here it has all of it.
	finalState struct {
		from    int32
		ticket  protocol.Ticket
		records map[leasehold.Key]record
	}
	// moveReply is the target's reply.
	moveReply struct {
		ticket    protocol.Ticket
		confirmed bool
	}
)

// A completion is the end of an asynchronous function of the application. It is dropped if the process has
// ended.
type completion struct {
	epoch uint32
	what  string // for the trace
	do    func()
}

func (o *ownerHost) complete(d time.Duration, what string, do func()) {
	o.Later(d, o.endpoint, 0, completion{o.epoch, what, do})
}

// simStop is the time that a source waits for the target's reply, simInstall the maximum time that the
// target's application needs to install state.
const (
	simStop    = 3 * time.Second
	simInstall = 100 * time.Millisecond
)

// upcall draws the duration of a function of the application, and whether it fails or hangs until its
// timeout: only while the nemesis injects that.
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
		o.complete(d, "copied", func() { o.moved(a.Ticket, !failed, owner.Copied{Ticket: a.Ticket}) })
	case owner.Stop:
		o.sendFinalState(a.Ticket)
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
		o.complete(d, "installed", func() { o.installed(a, in.records, failed) })
	case owner.Parted:
		o.complete(time.Millisecond, "parted", func() {
			o.leaving = true
			o.step(owner.Leave{})
		})
	}
}

// sendFinalState reads the state of a range that is no longer served, and sends it.
func (o *ownerHost) sendFinalState(t protocol.Ticket) {
	out := o.outgoing[t]
	records := make(map[leasehold.Key]record)
	for key, r := range o.state {
		if out.Range.Contains(key) && keeps(o.view, key, r.generation) { // older records are of an earlier tenure
			records[key] = r
		}
	}
	o.complete(simStop, "timeout of the final state", func() {
		if o.outgoing[t] != nil {
			o.oracle.resumes(o, t)
			o.step(owner.GaveUp{Ticket: t})
		}
	})
	if to := o.space.home[out.To.Session]; to != nil {
		o.send(o.endpoint, to.endpoint, finalState{o.endpoint, t, records})
	}
}

func (o *ownerHost) answerMove(in *incoming, confirmed bool) {
	if from := o.space.home[in.From.Session]; from != nil {
		o.send(o.endpoint, from.endpoint, moveReply{in.Ticket, confirmed})
	}
}

// moved continues a move at the source with an event, or aborts the move.
func (o *ownerHost) moved(t protocol.Ticket, ok bool, e owner.Event) {
	if !ok {
		e = owner.GaveUp{Ticket: t}
	}
	o.step(e)
}

func (o *ownerHost) imported(t protocol.Ticket, failed bool) {
	switch in := o.incoming[t]; {
	case in == nil:
	case failed:
		delete(o.incoming, t)
		o.answerMove(in, false)
	default:
		o.step(owner.Imported{Ticket: t})
	}
}

func (o *ownerHost) installed(a owner.Install, records map[leasehold.Key]record, failed bool) {
	if !failed {
		for key, r := range records {
			o.state[key] = record{r.version, max(a.Lease.Generation, o.state[key].generation), r.at}
		}
	}
	o.step(owner.Installed{Ticket: a.Ticket, Failed: failed})
}

// receiveState passes the state to the importer, if the move is known.
func (o *ownerHost) receiveState(r finalState) {
	in := o.incoming[r.ticket]
	if in == nil {
		o.send(o.endpoint, r.from, moveReply{r.ticket, false})
		return
	}
	if in.records != nil {
		return // duplicate
	}
	in.records = r.records
	d, failed := o.upcall(500 * time.Millisecond)
	o.complete(d, "imported", func() { o.imported(r.ticket, failed) })
}

// loaded adds measured loads to an owner's request, now and then. They are drawn at random. After the faults
// stop there are no new loads, so that the plan becomes stable.
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
