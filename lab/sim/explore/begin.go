package explore

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// Begin returns the initial state of a scenario.
func (s *Scenario) Begin() (*state, error) {
	k := newKit(s)
	st := &state{scenario: s, kit: k, now: time.Second}
	st.putStore(newStore())
	for i := range s.size() {
		if s.From == Joining && i == follower-1 {
			st.procs[i] = &process{owner: engine.Must(owner.New(0, s.ownerConfig(i, 0))), wake: mono.Never, paused: true}
			k.digestProcess(st.procs[i])
			continue
		}
		st.boot(i, 1)
	}
	if s.From != Dawn {
		if err := st.runWithoutFaults(); err != nil {
			return nil, err
		}
	}
	switch s.From {
	case Joining:
		st.boot(follower-1, 1)
	case Outage:
		if err := st.outage(); err != nil {
			return nil, err
		}
	}
	st.detours, st.crashes, st.duplicates, st.pauses = s.Detours, s.Crashes, s.Duplicates, s.Pauses
	if st.broken != nil {
		return nil, fmt.Errorf("the initial state violates an invariant: %v", st.broken)
	}
	return st, nil
}

// runWithoutFaults executes steps without faults, until all keys have an owner and all leases have been renewed once.
func (st *state) runWithoutFaults() error {
	for range 500 {
		if len(st.messages) > 0 {
			l := st.messages[0]
			st.messages = without(st.messages, 0)
			st.deliver(l)
			continue
		}
		if st.stable() {
			return nil
		}
		st.pass()
	}
	return fmt.Errorf("the group does not become stable: %s", st.holdings())
}

// outage crashes all managers, and restarts them when the leases of all owners are suspended.
// Requests that are sent in between are lost.
func (st *state) outage() error {
	for i := range managers {
		stopped := *st.procs[i]
		stopped.paused = true
		st.procs[i] = &stopped
	}
	for range 500 {
		st.messages = nil
		if st.suspendedOwners() == owners {
			for i := range managers {
				st.boot(i, st.procs[i].epoch+1)
			}
			return nil
		}
		st.pass()
	}
	return fmt.Errorf("no suspension without managers: %s", st.holdings())
}

func (st *state) suspendedOwners() int {
	n := 0
	for _, p := range st.running() {
		if p.owner != nil && p.owner.Suspended() {
			n++
		}
	}
	return n
}

// stable reports whether each running owner has a range, the lookup has the table, and a leader has authority.
func (st *state) stable() bool {
	held, running := 0, 0
	for i, p := range st.running() {
		if p.lookup != nil && p.lookup.LSN() == 0 {
			return false
		}
		if p.owner == nil || p.paused {
			continue
		}
		running++
		if v := p.owner.View(); st.clock(i) < v.Until && st.now > 4*time.Second {
			held += len(v.Leases)
		}
	}
	return held >= running && st.procs[0].node.Leads(st.clock(0))
}
