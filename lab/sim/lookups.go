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
	// newest is the newest request, and the managers that have got it.
	newest struct {
		seq      protocol.Seq
		managers []storage.ManagerID
	}
	// bookmark is an LSN that it once had, for a caller that resumes from there, perhaps in another process.
	bookmark leasehold.LSN
}

func (w *world) addLookup(i int, s *space) {
	l := &lookupHost{host: w.addHost(fmt.Sprintf("lookup%d", i)), space: s, index: i}
	l.deliver = l.handle
	w.lookups = append(w.lookups, l)
}

// Times of the simulated lookups: shorter than the defaults, so that a cut of
// seconds matters.
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

// conservative reports whether lookups report everything as lost when contact is: in half of the worlds.
func (w *world) conservative() bool { return w.Seed/8%2 == 1 }

func (l *lookupHost) handle(what any) {
	if e := lookupEvent(what); e != nil {
		l.do(l.machine.Step(l.now(), e))
	} else if what == nil {
		l.do(l.machine.Advance(l.now()))
	}
}

// lookupEvent is a message as a lookup machine takes it; nil if it is for other machines.
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

// Managers that follow each other: a standby asks the leader on behalf of its
// own lookups. To the leader it is a lookup like any other, with a number
// behind those of the real ones.

type (
	// followRequest is a standby's question, with the standby's number and
	// which of its processes asks.
	followRequest struct {
		from    int
		epoch   uint32
		request *protocol.LookupRequest
	}
	// followReply is what a manager says to a standby that follows it. As on a
	// stream, it reaches the process that asked or nobody.
	followReply struct {
		to    *managerHost
		epoch uint32
		ns    leasehold.Namespace
		event lookup.Event
	}
)

// followed is who follows us, and what it last asked for.
type followed struct {
	epoch uint32
	ns    leasehold.Namespace
}

func (m *managerHost) handleFollow(now mono.Instant, f followRequest) {
	asked := *f.request
	asked.Lookup = uint64(len(m.lookups) + f.from)
	m.followers[f.from] = followed{f.epoch, f.request.Namespace}
	m.heard[asked.Lookup] = m.Now
	m.do(m.node.Step(now, managerproc.Lookup{LookupRequest: &asked}))
}

// answer sends something to a lookup, or to a standby that follows us.
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
	for i, heard := range m.heard {
		if heard == 0 {
			continue
		}
		if i >= len(m.lookups) || m.lookups[i].space.name == ns {
			m.answer(uint64(i), reply)
		}
	}
}

// request sends a request to a manager. A manager that is down refuses the connection, or the request is lost. I8: a manager
// gets a request at most once, however often it is passed on.
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
