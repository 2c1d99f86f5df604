package flease

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/fleasenet"
)

// slowToOpen is a network that is slow to give away an address.
type slowToOpen struct {
	*Memory
	before func()
}

func (s slowToOpen) open(c fleasenet.Config) (fleasenet.Net, error) {
	s.before()
	return s.Memory.open(c)
}

// A member is silent for long enough after its predecessor has ended, and not only
// after its own first moment: between the two the predecessor may have accepted
// what nobody else knows of.
func TestSilenceCountsFromTheSocket(t *testing.T) {
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
		n, err := start(cfg, &testTime{systemTime: newSystemTime()})
		if err != nil {
			t.Fatal(err)
		}
		s.nodes[2] = n
		next := s.acquire(3, "r")
		if l.Valid() && next.Valid() {
			t.Error("two have it")
		}
	})
}

// The others know of a member that was restarted that it does not take part yet, and
// when it does.
func TestStatusTellsWhoWaits(t *testing.T) {
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
		time.Sleep(lease / 2) // a majority was enough for that; then all hear of it
		if waits() {
			t.Fatal("who takes part seems to wait")
		}
		s.kill(2)
		s.start(2)
		time.Sleep(lease / 2)
		if !waits() {
			t.Error("one that has just started seems to take part")
		}
		s.acquire(2, "other")
		time.Sleep(lease / 2)
		if waits() {
			t.Error("it takes part, and seems to wait")
		}
	})
}
