package explore

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

// All interleavings, which do not get far; and all with few detours, which get as
// far as to a second tenure.
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
		t.Errorf("only %d leases were acquired: that proves little", leases)
	}
}

// Equal states are found to be equal, whichever way led to them.
func TestOrderOfArrivalIsForgotten(t *testing.T) {
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
	if len(first.mail) != 2 {
		t.Fatalf("%d packets are under way, want a read for each of two peers", len(first.mail))
	}
	a, b := first.next(false), first.next(false)
	to, from := a.mail[0], a.mail[1]
	a.deliver(0, false)
	a.deliver(indexOf(a, from), false)
	b.deliver(1, false)
	b.deliver(indexOf(b, to), false)
	if a.Hash() != b.Hash() {
		t.Error("two reads that arrive in either order lead to states that differ")
	}
	if a.Hash() == first.Hash() {
		t.Error("a state in which two reads have arrived is taken for the one before")
	}
}

func indexOf(st *state, l *letter) int {
	for i := range st.mail {
		if st.mail[i].hash == l.hash {
			return i
		}
	}
	return -1
}

// A step must not change the state that it starts from.
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
		t.Error("it goes on after its context has ended")
	}
}
