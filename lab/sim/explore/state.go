package explore

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
	"github.com/leasehold-dev/leasehold/lab/sim/explore/image"
	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

// A state is the state of the whole cluster. It is immutable: a step creates a new one, which shares
// unchanged parts.
type state struct {
	scenario *Scenario
	kit      *kit
	now      time.Duration // true time
	procs    [processes]*process
	store    *store
	messages []*message // in flight, in the order in which they were sent
	broken   *explorer.Violation
	resumed  bool // the last step resumed a suspended lease
	refused  bool // the last step ended a suspended lease
	lost     bool // in the last step a lookup has reported a loss
	died     bool // the last step has acknowledged a death notice

	detours, crashes, duplicates, pauses int8 // remaining
}

func (st *state) Broken() *explorer.Violation { return st.broken }

func (st *state) Figure(i int) uint64 {
	switch i {
	case 0:
		return uint64(st.store.record.Term)
	case 1:
		return uint64(len(st.store.changes))
	case 2:
		return uint64(min(st.suspendedOwners(), 1))
	case 3:
		return uint64(flag(st.resumed))
	case 4:
		return uint64(flag(st.refused))
	case 5:
		return uint64(flag(st.lost))
	}
	return uint64(flag(st.died))
}

// running returns the processes of the scenario.
func (st *state) running() []*process { return st.procs[:st.scenario.size()] }

type process struct {
	node   *managerproc.Machine // of a manager
	owner  *owner.Machine       // of an owner
	lookup *lookup.Machine      // of a lookup
	epoch  uint8                // number of starts
	wake   mono.Instant
	paused bool // stopped: it receives no event

	// Of an owner: leases that have ended, and generations that it has installed.
	ended     []leasehold.Lease
	installed []leasehold.Generation

	followers uint8 // of a manager: a bit for each process that has requested the table from it

	digests digests
}

// A message is a message in flight, a request to the store, or a pending event of a process.
type message struct {
	to        int // receiver; of a request to the store, the sender
	epoch     uint8
	what      any  // *protocol.LeaseRequest, owner.Event, *request, node.Event
	reordered bool // reordered: later messages are delivered before it
	timedOut  bool // a request to the store that has timed out

	digests digests
}

func (l *message) toStore() bool { _, isRequest := l.what.(*request); return isRequest }

var (
	managerNames = [managers]storage.ManagerID{"m0", "m1"}
	ownerNames   = [owners]leasehold.OwnerID{"a", "b"}
)

func session(i int, epoch uint8) leasehold.Session {
	return leasehold.Session{1, byte(i), epoch}
}

func (st *state) clock(i int) mono.Instant {
	return mono.Instant(int64(st.now) / 1000 * int64(st.scenario.Clocks.Rates[i]))
}

// when returns the true time at which the clock of a process reaches an instant.
func (st *state) when(i int, at mono.Instant) time.Duration {
	if at == mono.Never {
		return time.Duration(mono.Never)
	}
	rate := int64(st.scenario.Clocks.Rates[i])
	return time.Duration((int64(at)+rate-1)/rate) * 1000
}

func (st *state) boot(i int, epoch uint8) {
	p := &process{epoch: epoch}
	st.procs[i] = p
	now := st.clock(i)
	switch {
	case i < managers:
		p.node = engine.Must(managerproc.New(now, nodeConfig(i, epoch)))
	case i < follower:
		p.owner = engine.Must(owner.New(now, st.scenario.ownerConfig(i, epoch)))
	default:
		p.lookup = engine.Must(lookup.New(now, lookupConfig()))
	}
	st.call(i, nil)
}

func nodeConfig(i int, epoch uint8) managerproc.Config {
	return managerproc.Config{
		Rand: explorer.Constant(),
		Election: byrecord.Config{
			Self: managerNames[i], Session: session(i, epoch), TTL: ttl, Renew: ttl / 2, Poll: ttl, Drift: drift, Boot: "boot", Rand: explorer.Constant(),
		},
		Configure: func(n storage.Namespace) (manager.Config, error) {
			return manager.Config{
				Timing: protocol.Timing{Lease: n.Lease, Renew: n.Renew, Drift: n.Drift},
				Policy: halves{}, MaxOwners: n.MaxOwners, Rand: explorer.Constant(),
			}, nil
		},
	}
}

func (s *Scenario) ownerConfig(i int, epoch uint8) owner.Config {
	h := &table.Holder{Owner: ownerNames[i-managers], Session: session(i, epoch), Addr: "host", Weight: 1, Process: fmt.Sprint(epoch)}
	if s.From == Supervised {
		h.DeathHash = token(epoch).Hash()
	}
	return owner.Config{Namespace: namespace, Rand: explorer.Constant(), Holder: h}
}

// call passes an event to a process, on a copy of its machine; nil if time has passed.
func (st *state) call(i int, event any) {
	p := *st.procs[i]
	st.procs[i] = &p
	defer func() {
		if r := recover(); r != nil {
			st.violated(engine.NoCrash, "%v\n%s", r, debug.Stack())
		}
	}()
	switch {
	case p.node != nil:
		st.callNode(i, &p, event)
	case p.owner != nil:
		st.callOwner(i, &p, event)
	default:
		st.callLookup(i, &p, event)
	}
	st.kit.digestProcess(&p)
}

func (st *state) callNode(i int, p *process, event any) {
	p.node = image.Copy(st.kit.image, p.node)
	if l, ok := event.(managerproc.Lookup); ok {
		p.followers |= 1 << l.LookupRequest.Lookup
	}
	var actions []managerproc.Action
	if event == nil {
		actions, p.wake = p.node.Advance(st.clock(i))
	} else {
		actions, p.wake = p.node.Step(st.clock(i), event.(managerproc.Event))
	}
	for _, a := range actions {
		st.doNode(i, p, a)
	}
	st.checkLeaders()
}

func (st *state) doNode(i int, p *process, a managerproc.Action) {
	switch a := a.(type) {
	case managerproc.Elect:
		switch a.Action.(type) {
		case byrecord.Read, byrecord.Swap:
			st.sendToStore(i, p, 0, a.Action)
		}
	case managerproc.Manage:
		switch act := a.Action.(type) {
		case manager.Commit, manager.ReadEnd:
			st.sendToStore(i, p, a.Term, act)
		case manager.Send:
			st.sendToOwner(act.Reply.Session, owner.Reply{LeaseReply: act.Reply})
		case manager.Answer:
			st.sendTable(act.Lookup, lookup.Reply{LookupReply: act.Reply})
		case manager.Broadcast:
			st.checkTable(p)
			st.broadcast(p, act.Reply)
		}
	case managerproc.Load:
		st.sendToStore(i, p, a.Term, a)
	case managerproc.LoadCatalog:
		st.sendToStore(i, p, a.Term, a)
	case managerproc.RedirectOwner:
		st.sendToOwner(a.Session, owner.Redirect{NotLeader: a.NotLeader})
	case managerproc.Follow:
		request := *a.Request
		request.Lookup = uint64(i)
		for m := range managers {
			if a.To == managerNames[m] {
				st.post(&message{to: m, what: managerproc.Lookup{LookupRequest: &request}})
			}
		}
	case managerproc.Answer:
		st.sendTable(a.Lookup, lookup.Reply{LookupReply: a.Reply})
	case managerproc.Relay:
		st.broadcast(p, a.Reply)
	case managerproc.RedirectLookup:
		st.sendTable(a.Lookup, lookup.Redirect{From: managerNames[i], NotLeader: a.NotLeader})
	case managerproc.RefuseLookup:
		st.sendTable(a.Lookup, lookup.Refused{From: managerNames[i], Kind: leasehold.KindOf(a.Why)})
	case managerproc.RefuseOwner:
		st.sendToOwner(a.Session, owner.Refused{Kind: leasehold.KindOf(a.Why)})
	case managerproc.DeathReply:
		st.checkAcknowledged(a)
	case managerproc.Parked:
		st.violated(engine.NoCrash, "a manager cannot lead: %v", a.Why)
	}
}

func (st *state) sendToStore(i int, p *process, term leasehold.Term, what any) {
	st.post(&message{to: i, epoch: p.epoch, what: &request{term, what}})
}

// sendToOwner sends an event to the owner with a session, also after the session has ended.
func (st *state) sendToOwner(s leasehold.Session, what owner.Event) {
	st.post(&message{to: int(s[1]), what: what})
}

func (st *state) callOwner(i int, p *process, event any) {
	p.owner = image.Copy(st.kit.image, p.owner)
	view, suspended := p.owner.View(), p.owner.Suspended()
	var actions []owner.Action
	if event == nil {
		actions, p.wake = p.owner.Advance(st.clock(i))
	} else {
		actions, p.wake = p.owner.Step(st.clock(i), event.(owner.Event))
	}
	for _, a := range actions {
		switch a := a.(type) {
		case owner.Send:
			st.checkRequestedLeases(i, view, a.Request)
			st.send(a)
		case owner.Publish:
			st.checkGaps(i, p, view, a.View)
			view = a.View
		case owner.ResumedLeases:
			st.resumed = true
		case owner.RevokedLeases:
			st.refused = st.refused || suspended
		case owner.GrantedLeases:
			st.checkInstalls(i, p, a.Leases)
		case owner.FindPredecessor:
			// This host runs one process at a time, so every earlier one has ended.
			st.post(&message{to: i, epoch: p.epoch, what: owner.PredecessorGone{Session: a.Incumbent.Session}})
		}
	}
	st.checkExclusive()
}

func (st *state) send(s owner.Send) {
	for m := range managers {
		if s.To == "" || s.To == managerNames[m] {
			st.post(&message{to: m, what: managerproc.Request{LeaseRequest: s.Request}})
		}
	}
}

func (st *state) post(l *message) {
	st.kit.digestMessage(l)
	st.messages = append(slices.Clip(st.messages), l)
}

func (st *state) putStore(s *store) {
	st.kit.digestStore(s)
	st.store = s
}
