package sim

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
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
		ConservativeRecovery: w.conservative(),
	}))
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
	case protocol.NotLeader:
		l.do(l.machine.Step(now, lookup.Redirect{NotLeader: what}))
	case refused:
		l.do(l.machine.Step(now, lookup.Refused{Kind: what.kind}))
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
			w.toManagers(l.host, a.To, a.Request)
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
