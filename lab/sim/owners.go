package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// An ownerHost runs owner processes of one namespace.
type ownerHost struct {
	*host
	space   *space
	machine *owner.Machine
	manager *managerHost // in the same process; nil if there is none
	holder  *table.Holder
	view    *owner.View
	// keep is the time for which the application keeps suspended state; 0 if without limit.
	keep    time.Duration
	beyond  bool           // its clock is slower than the bound allows
	renewed leasehold.Term // term of the leader that last renewed its leases
	heardAt int64          // true time at which a leader last received a request of it
	aloneAt int64          // true time of the first request of another owner that a leader received after heardAt
	// aloneUntil is the end of the last period in which a leader may have expired it.
	aloneUntil int64
	requests   []int64 // true times of its requests within the last requestWindow
	leaving    bool    // leaves, and its process ends
	parting    bool    // parts: it leaves when its ranges have moved
	ops        []*operation
	// forgone are the generations of leases that it dropped for a reason of its own, or that a leader
	// recalled while they were valid.
	forgone map[leasehold.Generation]bool
	// granted are leases that it has been granted and has not served yet.
	granted []leasehold.Lease
	// sent and sentAt are the number of the newest request, and when it was sent; judged is the last view that
	// checkHolds has seen.
	sent   protocol.Seq
	sentAt mono.Instant
	judged *owner.View
	// token proves the end of the process; zero if it has no supervisor.
	token table.DeathToken

	promises promises
	workers  workers
	state    map[leasehold.Key]record
	outgoing map[protocol.Ticket]*outgoing
	incoming map[protocol.Ticket]*incoming
}

func (w *world) addOwner(i int, s *space) {
	o := &ownerHost{host: w.addHost(fmt.Sprintf("owner%d", i)), space: s}
	o.deliver = o.handle
	w.owners, s.owners = append(w.owners, o), append(s.owners, o)
}

func (o *ownerHost) firstName() leasehold.OwnerID {
	return leasehold.OwnerID(fmt.Sprintf("%c%d", 'a'+rune(o.space.index), o.endpoint))
}

func (o *ownerHost) boot(name leasehold.OwnerID) {
	now := o.start()
	session := engine.Must(leasehold.NewSession(randomBytes{o.Random}))
	// One process can have owners in two namespaces, with the same session.
	if len(o.spaces) > 1 && o.Chance(2) {
		if other := o.owners[o.Random.IntN(len(o.owners))]; other.space != o.space && other.alive && o.space.home[other.holder.Session] == nil {
			session = other.holder.Session
		}
	}
	o.holder = &table.Holder{
		Owner: name, Session: session, Addr: o.label,
		Weight: []float64{1, 1, 1, 0.5, 2}[o.Random.IntN(5)], Process: fmt.Sprintf("%s/%d", o.label, o.epoch),
	}
	o.supervise()
	o.space.home[session], o.space.latest[name] = o, session
	o.beyond, o.leaving, o.parting, o.ops, o.granted, o.renewed = false, false, false, nil, nil, 0
	o.requests = nil
	o.workers = workers{}
	o.state, o.forgone = make(map[leasehold.Key]record), make(map[leasehold.Generation]bool)
	o.outgoing, o.incoming = make(map[protocol.Ticket]*outgoing), make(map[protocol.Ticket]*incoming)
	o.keep = o.keepSuspended()
	mover := o.label
	if o.cfg.Agents || !o.cfg.Graceful && (!o.space.moves || o.Chance(6)) {
		mover = "" // an application that cannot move its state
	}
	o.promises.until, o.promises.dropped = 0, nil // agents of the previous process still rely on its answers
	o.machine = engine.Must(owner.New(now, owner.Config{
		Namespace: o.space.name, Holder: o.holder, Mover: mover, Promises: o.cfg.Agents, KeepSuspended: o.keep, Rand: o.NewRand(), Beats: o.beats(now),
	}))
	o.view = o.machine.View()
	o.Printf("%s is owner %v", o.label, o.holder)
	o.do(o.machine.Advance(now))
}

// keepSuspended returns the time for which the application keeps suspended state: mostly without limit.
func (o *ownerHost) keepSuspended() time.Duration {
	if o.cfg.Graceful || !o.Chance(8) {
		return 0
	}
	return 20 * time.Second
}

type randomBytes struct{ *rand.Rand }

func (r randomBytes) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return len(p), nil
}

func (o *ownerHost) handle(what any) {
	switch what := what.(type) {
	case nil:
		o.do(o.machine.Advance(o.now()))
	case *protocol.LeaseReply:
		before := o.view.Until
		o.step(owner.Reply{LeaseReply: what})
		if o.view.Until != before {
			o.renewed = what.Term
		}
	case protocol.NotLeader:
		o.step(owner.Redirect{NotLeader: what})
	case refused:
		o.step(owner.Refused{Kind: what.kind})
	case slept:
		o.promises.relying = nil // agents on the same computer slept too, and have detected it
		o.sent = 0               // it sends another request before it accepts a reply
		o.step(owner.Slept{})
	case owner.Event:
		o.step(what)
	case *operation:
		o.finishOperation(what)
		return
	case completion:
		if what.epoch == o.epoch {
			what.do()
		}
	case finalState:
		o.receiveState(what)
	case moveReply:
		o.moved(what.ticket, what.confirmed, owner.Confirmed{Ticket: what.ticket})
	}
	if o.alive && o.Chance(4) {
		o.operate()
	}
	if o.alive && o.cfg.Agents && o.Chance(3) {
		o.promise()
	}
	if o.alive && o.supervised() && o.Chance(64) {
		o.forge()
	}
}

func (o *ownerHost) step(e owner.Event) { o.do(o.machine.Step(o.now(), e)) }

func (o *ownerHost) do(actions []owner.Action, wake mono.Instant) {
	ownReason := false
	for _, a := range actions {
		switch a := a.(type) {
		case owner.Send:
			o.oracle.checkRequestedLeases(o, a.Request)
			o.oracle.checkRequestRate(o)
			o.sent, o.sentAt = a.Request.Seq, o.now()
			o.toManagers(o.host, a.To, o.loaded(a.Request))
		case owner.Publish:
			o.oracle.checkGaps(o, a.View)
			if o.cfg.Agents {
				o.promises.dropped = append(o.promises.dropped, protocol.Missing(o.view.Leases, a.View.Leases)...)
			}
			o.view = a.View
			o.awaitEnds()
			o.traceView()
		case owner.GrantedLeases:
			o.workers.grant(a.Leases)
			for _, l := range a.Leases {
				o.oracle.checkInstall(o, l)
			}
		case owner.RevokedLeases:
			o.workers.revoke(a.Leases)
			if a.Cause == leasehold.CauseMoved {
				o.oracle.addTransits(o, a.Leases)
				o.oracle.addCarried(o, a.Leases)
				o.nemesis.released(o)
			}
			for _, l := range a.Leases {
				o.forgone[l.Generation] = o.forgone[l.Generation] || ownReason || a.Cause != leasehold.CauseExpired
				if o.forgone[l.Generation] && a.Cause != leasehold.CauseMoved {
					o.oracle.truth(o.space).endCarried(l.Generation)
				}
			}
		case owner.FindPredecessor:
			o.findPredecessor(a.Incumbent)
		case owner.Settle:
			until := o.promises.until
			o.complete(0, "settling", func() { o.settlePromise(a.Number, until) })
		case owner.Left:
			o.left()
		case owner.StartMove, owner.Stop, owner.EndMove, owner.Expect, owner.Confirm, owner.Discard, owner.Install, owner.Parted:
			o.carry(a)
		case owner.Note:
			switch a.What {
			case owner.NoteSlept, owner.NoteClockSlow:
				ownReason = true
				o.oracle.dropCarried(o)
			case owner.NoteImportFailed, owner.NoteNameTaken, owner.NoteKeptTooLong:
				ownReason = true
			}
			o.note("owner: ", a.What)
			o.Printf("%s notes %v", o.label, setFields{a})
		}
	}
	if !o.alive {
		return
	}
	o.arm(wake)
	o.oracle.ownerStepped(o)
}

func (o *ownerHost) traceView() {
	if w := o.world; w.Traced() {
		w.Printf("%s holds %v for %v on its clock", o.label, o.view.Leases, o.view.Until.Sub(o.now()))
	}
}

// findPredecessor is the shell's search in the process table of its host: it finds only processes of the same
// host.
func (o *ownerHost) findPredecessor(h *table.Holder) {
	if h.Process == o.holder.Process || h.Addr != o.label || o.cfg.Agents {
		return
	}
	// A host runs one process at a time, so every earlier process has ended.
	o.Later(time.Millisecond, o.endpoint, 0, owner.PredecessorGone{Session: h.Session})
}

func (o *ownerHost) valid() bool {
	if !o.alive || o.asleep || len(o.view.Kept) == 0 {
		return false
	}
	return o.cfg.LeasesOff || o.now() < o.view.Until
}
