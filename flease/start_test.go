package flease

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/fleasenet"
)

// slowToOpen is a network that is slow to bind an address.
type slowToOpen struct {
	*Memory
	before func()
}

func (s slowToOpen) open(c fleasenet.Config) (fleasenet.Net, error) {
	s.before()
	return s.Memory.open(c)
}

// The wait of a started member counts from the end of its former process, when its address is bound, and
// not from the call of Start: in between the former process may have made promises.
func TestStartWaitCountsFromBind(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		for id := ID(1); id <= 3; id++ { // they meet
			if err := s.acquire(id, "warm").Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s.network.Cut(1, 3)
		s.network.Cut(3, 1)
		l := s.acquire(1, "r")
		cfg := s.config
		cfg.Self = 2
		cfg.Transport = slowToOpen{s.network, func() {
			time.Sleep(lease + lease/10)
			s.kill(2)
			s.network.Cut(1, 3)
			s.network.Cut(3, 1)
			s.network.Cut(1, 2)
			s.network.Cut(2, 1)
		}}
		n, err := start(cfg, &testTime{systemTime: newSystemTime(nil)})
		if err != nil {
			t.Fatal(err)
		}
		s.nodes[2] = n
		next := s.acquire(3, "r")
		if l.Valid() && next.Valid() {
			t.Error("two holders")
		}
	})
}

// The status of other members shows whether a restarted member takes part.
func TestStatusShowsWaitingMembers(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		waits := func() bool {
			for _, m := range s.nodes[1].Status().Members {
				if m.ID == 2 {
					return m.Waits
				}
			}
			return false
		}
		s.acquire(2, "r")
		time.Sleep(lease / 2) // a majority was enough; then all members receive it
		if waits() {
			t.Fatal("a member that takes part is shown as waiting")
		}
		s.kill(2)
		s.start(2)
		time.Sleep(lease / 2)
		if !waits() {
			t.Error("a member that has just started is shown as taking part")
		}
		s.acquire(2, "other")
		time.Sleep(lease / 2)
		if waits() {
			t.Error("a member that takes part again is shown as waiting")
		}
	})
}
