package explore

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

// All interleavings, of short paths; and all paths with few detours, which are long enough for a second
// tenure.
func TestExplore(t *testing.T) {
	leases := uint64(0)
	for _, s := range append(Scenarios(4, explorer.Unlimited), Scenarios(12, 1)...) {
		r, err := explorer.Explore(t.Context(), s, explorer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Violated; v != nil {
			t.Errorf("%s: %s after %q", s.Name(), v.Text, v.Path)
		}
		leases += r.Figure("leases")
		t.Logf("%v, %v", r, r.Elapsed.Round(time.Millisecond))
	}
	if leases < 100 {
		t.Errorf("only %d leases were acquired", leases)
	}
}

// States are equal if they differ only in the path that led to them.
func TestOrderOfDeliveryDoesNotChangeTheState(t *testing.T) {
	s := Scenarios(6, explorer.Unlimited)[0]
	st, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	var wishes []*state
	st.eachWish(-1, func(n *state, _ func() string) {
		wishes = append(wishes, n)
	})
	first := wishes[0]
	if len(first.packets) != 2 {
		t.Fatalf("%d packets in flight, want a read for each of two peers", len(first.packets))
	}
	a, b := first.next(false), first.next(false)
	to, from := a.packets[0], a.packets[1]
	a.deliver(0, false)
	a.deliver(indexOf(a, from), false)
	b.deliver(1, false)
	b.deliver(indexOf(b, to), false)
	if a.Hash() != b.Hash() {
		t.Error("the order of two reads changes the state")
	}
	if a.Hash() == first.Hash() {
		t.Error("two reads do not change the hash of the state")
	}
}

func indexOf(st *state, l *packet) int {
	for i := range st.packets {
		if st.packets[i].hash == l.hash {
			return i
		}
	}
	return -1
}

// A step does not change the state that it starts from.
func TestStepsDoNotChangeTheirState(t *testing.T) {
	s := Scenarios(4, explorer.Unlimited)[0]
	st, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	var walk func(*state, int)
	walk = func(st *state, left int) {
		if left == 0 {
			return
		}
		before := st.Hash()
		machines := make([]string, 0, processes)
		for _, p := range st.procs {
			machines = append(machines, string(p.machine.AppendState(nil)))
		}
		st.Each(func(n *state, _ func() string) {
			walk(n, left-1)
		})
		for i, p := range st.procs {
			if string(p.machine.AppendState(nil)) != machines[i] {
				t.Fatal("a machine was changed by a step of its clone")
			}
		}
		if st.Hash() != before {
			t.Fatal("a state was changed by a step from it")
		}
	}
	walk(st, 3)
}

func TestExplorationEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := explorer.Explore(ctx, Scenarios(20, explorer.Unlimited)[0], explorer.Options{}); err == nil {
		t.Error("the exploration continues after its context has ended")
	}
}
