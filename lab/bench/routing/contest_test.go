package main

import (
	"context"
	"testing"
)

// TestRoutersFind checks that each router finds an address for every name, before and
// while a server leaves and returns.
func TestRoutersFind(t *testing.T) {
	const servers = 30
	for _, start := range starters() {
		c, err := start(t.Context(), servers)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.close)
		check := func(when string) {
			t.Helper()
			got := c.find(0, nameCount)
			if want := nameCount * len(address(0)); !c.floor && got != want {
				t.Errorf("%s, %s: the addresses have %d bytes, want %d", c.name, when, got, want)
			}
			if c.floor && got == 0 {
				t.Errorf("%s, %s: every name is in the first range", c.name, when)
			}
		}
		check("at first")
		for i := range 4 {
			if c.change == nil {
				break
			}
			if err := c.change(i); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			check("after a change")
		}
		if c.pieces < servers {
			t.Errorf("%s has %d pieces for %d servers", c.name, c.pieces, servers)
		}
	}
}

// TestLookupFollowsChanges: moved ranges are found at their new owner.
func TestLookupFollowsChanges(t *testing.T) {
	leases, err := leases(3)
	if err != nil {
		t.Fatal(err)
	}
	m := serve(leases)
	defer m.stop()
	l, err := m.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close(context.Background()) }()
	for i, want := range []string{address(2), address(1)} {
		changed := l.Changed()
		if err := m.change(i); err != nil {
			t.Fatal(err)
		}
		<-changed
		if addr, ok := l.Find(m.away[0].Start); addr != want || !ok {
			t.Errorf("after change %d it is at %q, want %q", i, addr, want)
		}
	}
}

func TestTurns(t *testing.T) {
	changes := 0
	c := &router{
		name: "x", find: func(_, n int) int { return n },
		change: func(i int) error {
			if i != changes {
				t.Errorf("change %d is called %d", changes, i)
			}
			changes++
			return nil
		},
	}
	for range 2 {
		for _, m := range modes() {
			if err := c.turn(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, m := range modes() {
		if c.summary(m).Turns != 2 {
			t.Errorf("%v: %d turns, want 2", m, c.summary(m).Turns)
		}
	}
	if changes < 4 || len(c.rates) != 4 {
		t.Errorf("%d changes in %d turns", changes, len(c.rates))
	}
}
