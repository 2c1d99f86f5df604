package transcript

import (
	"fmt"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A lookup is a caller's process.
type lookup struct {
	host
	id      uint64
	machine *machine.Machine
}

func (l *lookup) boot(options map[string]string) error {
	if err := setRate(&l.host, options); err != nil {
		return err
	}
	cfg := machine.Config{Namespace: namespace, ID: l.id, Rand: l.rand()}
	if err := setDuration(&cfg.Poll, options["poll"]); err != nil {
		return err
	}
	if err := setDuration(&cfg.Stale, options["stale"]); err != nil {
		return err
	}
	cfg.ConservativeRecovery = options["recovery"] == "conservative"
	var err error
	l.machine, err = machine.New(l.local(), cfg)
	return err
}

func (l *lookup) slept() { l.do(l.machine.Step(l.local(), machine.Slept{})) }

func (l *lookup) wake() { l.do(l.machine.Advance(l.local())) }

func (l *lookup) receive(_ string, what any) {
	switch what := what.(type) {
	case *protocol.LookupReply:
		l.do(l.machine.Step(l.local(), machine.Reply{LookupReply: what}))
	case protocol.NotLeader:
		l.do(l.machine.Step(l.local(), machine.Redirect{NotLeader: what}))
	}
}

func (l *lookup) do(actions []machine.Action, wake mono.Instant) {
	for _, a := range actions {
		switch a := a.(type) {
		case machine.Send:
			l.sendToManagers(l.name, a.To, a.Request)
		case machine.Publish:
			l.then("%s is at LSN %d", l.name, a.Table.LSN())
		case machine.Losses:
			for _, loss := range a.Losses {
				l.then("%s upcall: lost %s", l.name, l.loss(loss))
			}
		case machine.Contact:
			state := "restored"
			if a.Lost {
				state = "lost"
			}
			l.then("%s upcall: contact %s", l.name, state)
		case machine.Note:
			l.then("%s %s", l.name, lookupNote(a))
		}
	}
	l.alarm = wake
}

func (l *lookup) show() {
	if t := l.machine.Table(); t != nil {
		l.printTable(t)
		return
	}
	l.say("%s has no table yet", l.name)
}

// where returns the owner of a key according to the lookup.
func (l *lookup) where(k leasehold.Key) string {
	if t := l.machine.Table(); t != nil {
		if _, e := t.At(k); !e.Vacant() {
			return l.holderName(e.Holder)
		}
	}
	return "no owner"
}

func (l *lookup) quote(_ string, what any) string {
	return fmt.Sprintf("changes since LSN %d", what.(*protocol.LookupRequest).LSN)
}
