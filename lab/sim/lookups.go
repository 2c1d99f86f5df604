package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A lookupHost runs lookups of one namespace.
type lookupHost struct {
	*host
	world   *world
	space   *space
	index   int
	machine *lookup.Machine
	watch   lookupWatch
	// request is the newest request, and the managers that have got it.
	request struct {
		seq      protocol.Seq
		managers []storage.ManagerID
	}
	// bookmark is an LSN that it once had, for a caller that resumes from there, perhaps in another process.
	bookmark leasehold.LSN
}

func (w *world) addLookup(i int, s *space) {
	l := &lookupHost{host: w.addHost(fmt.Sprintf("lookup%d", i)), world: w, space: s, index: i}
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
	w := l.world
	now := w.start(l.host)
	l.machine = engine.Must(lookup.New(now, lookup.Config{
		Namespace: l.space.name, ID: uint64(l.index), Poll: simPoll, Stale: simStale, Rand: w.NewRand(), Beats: w.beats(now),
		Managers: w.managerIDs(), ConservativeRecovery: w.conservative(),
	}))
	l.request.seq, l.request.managers = 0, nil
	l.watch = lookupWatch{}
	l.do(l.machine.Advance(now))
}

// conservative reports whether lookups report everything as lost when contact is: in half of the worlds.
func (w *world) conservative() bool { return w.Seed/8%2 == 1 }

func (l *lookupHost) handle(what any) {
	now := l.clock.At(l.world.Now)
	switch what := what.(type) {
	case nil:
		l.do(l.machine.Advance(now))
	case *protocol.LookupReply:
		l.do(l.machine.Step(now, lookup.Reply{LookupReply: what}))
	case slept:
		l.do(l.machine.Step(now, lookup.Slept{}))
	case lookup.Event:
		l.do(l.machine.Step(now, what))
	}
}

func (l *lookupHost) do(actions []lookup.Action, wake mono.Instant) {
	w := l.world
	step := lookupStep{}
	for _, a := range actions {
		switch a := a.(type) {
		case lookup.Send:
			l.send(a)
		case lookup.Publish:
			step.table = a.Table
		case lookup.Losses:
			step.losses = append(step.losses, a.Losses...)
		case lookup.Contact:
			step.contacts = append(step.contacts, a.Lost)
		case lookup.Note:
			step.snapshot = step.snapshot || a.What == lookup.NoteSnapshot
			w.notes.lookups[a.What]++
			w.Printf("%s notes %v (%d, %d)", l.label, a.What, a.Have, a.Want)
		}
	}
	w.arm(l.host, wake)
	w.oracle.lookupStepped(l, &step)
}

// send sends a request to a manager. A manager that is down refuses the connection, or the request is lost. I8: a manager
// gets a request at most once, however often it is passed on.
func (l *lookupHost) send(a lookup.Send) {
	w := l.world
	if l.request.seq != a.Request.Seq {
		l.request.seq, l.request.managers = a.Request.Seq, nil
	} else {
		w.Branches["lookup: request passed on"]++
	}
	w.oracle.checks[I8Bounds]++
	if slices.Contains(l.request.managers, a.To) {
		w.Violated(I8Bounds, "%s sends request %d to %s twice", l.label, a.Request.Seq, a.To)
	}
	l.request.managers = append(l.request.managers, a.To)
	i := w.managerIndex(a.To)
	if i >= 0 && !w.managers[i].alive && w.Chance(2) {
		w.send(w.managers[i].endpoint, l.endpoint, lookup.Failed{From: a.To})
		return
	}
	w.toManagers(l.host, a.To, a.Request)
}
