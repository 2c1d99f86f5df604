package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

type lookupHost struct {
	*host
	space   *space
	index   int
	machine *lookup.Machine
	watch   lookupWatch
	// newest is the newest request, and the managers that it was sent to.
	newest struct {
		seq      protocol.Seq
		managers []storage.ManagerID
	}
	// bookmark is an earlier LSN, from which a caller resumes, perhaps in another process.
	bookmark leasehold.LSN
}

func (w *world) addLookup(i int, s *space) {
	l := &lookupHost{host: w.addHost(fmt.Sprintf("lookup%d", i)), space: s, index: i}
	l.deliver = l.handle
	w.lookups = append(w.lookups, l)
}

// Times of the simulated lookups: shorter than the defaults, so that a network fault of seconds matters.
const (
	simPoll  = 4 * time.Second
	simStale = 12 * time.Second
)

func (l *lookupHost) boot() {
	now := l.start()
	l.machine = engine.Must(lookup.New(now, lookup.Config{
		Namespace: l.space.name, ID: uint64(l.index), Poll: simPoll, Stale: simStale, Rand: l.NewRand(), Beats: l.beats(now),
		Managers: l.managerIDs(), ConservativeRecovery: l.conservative(),
	}))
	l.newest.seq, l.newest.managers = 0, nil
	l.watch = lookupWatch{}
	l.do(l.machine.Advance(now))
}

// conservative reports whether lookups use ConservativeRecovery: in half of the worlds.
func (w *world) conservative() bool { return w.Seed/8%2 == 1 }

func (l *lookupHost) handle(what any) {
	if e := lookupEvent(what); e != nil {
		l.do(l.machine.Step(l.now(), e))
	} else if what == nil {
		l.do(l.machine.Advance(l.now()))
	}
}

// lookupEvent returns the event of a lookup machine for a message; nil if the message is for another machine.
func lookupEvent(what any) lookup.Event {
	switch what := what.(type) {
	case *protocol.LookupReply:
		return lookup.Reply{LookupReply: what}
	case slept:
		return lookup.Slept{}
	case lookup.Event:
		return what
	}
	return nil
}

func (l *lookupHost) do(actions []lookup.Action, wake mono.Instant) {
	step := lookupStep{}
	for _, a := range actions {
		switch a := a.(type) {
		case lookup.Send:
			l.request(a)
		case lookup.Publish:
			step.table = a.Table
		case lookup.Losses:
			step.losses = append(step.losses, a.Losses...)
		case lookup.Contact:
			step.contacts = append(step.contacts, a.Lost)
		case lookup.Note:
			step.snapshot = step.snapshot || a.What == lookup.NoteSnapshot
			l.note("lookup: ", a.What)
			l.Printf("%s notes %v", l.label, setFields{a})
		}
	}
	l.arm(wake)
	l.oracle.lookupStepped(l, &step)
}

// Managers follow each other: a standby sends requests to the leader for its own lookups. The leader treats
// it as a lookup, with an ID above those of the lookups.

type (
	// followRequest is a request of a standby, with its index and the epoch of its process.
	followRequest struct {
		from    int
		epoch   uint32
		request *protocol.LookupRequest
	}
	// followReply is the reply to a standby. As on a stream, only the process that sent the request receives
	// it.
	followReply struct {
		to    *managerHost
		epoch uint32
		ns    leasehold.Namespace
		event lookup.Event
	}
)

// followed is a process that follows this manager, and the namespace of its last request.
type followed struct {
	epoch uint32
	ns    leasehold.Namespace
}

func (m *managerHost) handleFollow(now mono.Instant, f followRequest) {
	asked := *f.request
	asked.Lookup = uint64(len(m.lookups) + f.from)
	m.followers[f.from] = followed{f.epoch, f.request.Namespace}
	m.lastRequest[asked.Lookup] = m.Now
	m.do(m.node.Step(now, managerproc.Lookup{LookupRequest: &asked}))
}

// answer sends a reply to a lookup, or to a standby that follows this manager.
func (m *managerHost) answer(to uint64, what any) {
	lookups := uint64(len(m.lookups))
	switch {
	case to < lookups:
		m.send(m.endpoint, m.lookups[to].endpoint, what)
	case to < lookups+uint64(len(m.managers)):
		i := to - lookups
		reply := followReply{m.managers[i], m.followers[i].epoch, m.followers[i].ns, lookupEvent(what)}
		if r, ok := what.(*protocol.LookupReply); ok {
			reply.ns = r.Namespace
		}
		m.send(m.endpoint, m.managers[i].endpoint, reply)
	}
}

func (m *managerHost) broadcast(ns leasehold.Namespace, reply *protocol.LookupReply) {
	for i, last := range m.lastRequest {
		if last == 0 {
			continue
		}
		if i >= len(m.lookups) || m.lookups[i].space.name == ns {
			m.answer(uint64(i), reply)
		}
	}
}

// request sends a request to a manager. A manager that is down refuses the connection, or the request is
// lost. I8: each manager receives a request at most once, however often the lookup retries.
func (l *lookupHost) request(a lookup.Send) {
	if l.newest.seq != a.Request.Seq {
		l.newest.seq, l.newest.managers = a.Request.Seq, nil
	} else {
		l.Branches["lookup: request passed on"]++
	}
	l.oracle.Checks[I8Bounds]++
	if slices.Contains(l.newest.managers, a.To) {
		l.Violated(I8Bounds, "%s sends request %d to %s twice", l.label, a.Request.Seq, a.To)
	}
	l.newest.managers = append(l.newest.managers, a.To)
	i := l.managerIndex(a.To)
	if i >= 0 && !l.managers[i].alive && l.Chance(2) {
		l.send(l.managers[i].endpoint, l.endpoint, lookup.Failed{From: a.To})
		return
	}
	l.toManagers(l.host, a.To, a.Request)
}
