package manager_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/table"
)

// A store that was restored from an old backup knows nothing of leases that owners have. None of what it has
// forgotten is granted a second time, and an owner that makes such leases up cannot use generations up.
func TestForgottenGenerations(t *testing.T) {
	const had = 5000
	p := newPool(t, &storage.State{})
	var granted []leasehold.Generation
	p.wrote = func(b *storage.Batch) {
		for i := range b.Changes {
			if c := &b.Changes[i]; c.Kind == table.Granted {
				granted = append(granted, c.Generation)
			}
		}
	}
	says := func(i int, g leasehold.Generation) {
		o := &player{holder: poolHolder(i), leases: []leasehold.Lease{{Range: leasehold.All, Generation: g}}}
		p.players[o.holder.Session] = o
		p.say(o)
		p.settle()
	}
	says(0, had)
	p.requireSettled()
	for _, g := range granted {
		if g <= had+1<<39 {
			t.Fatalf("generation %d is granted, and %d was before: nobody knows what else was", g, had)
		}
	}
	if len(granted) == 0 {
		t.Fatal("nothing is granted")
	}
	newest := p.machine.Table().Newest()
	says(1, newest+1<<39)
	p.requireSettled()
	if now := p.machine.Table().Newest(); now > newest+10_000 {
		t.Errorf("another claim has taken generations from %d to %d", newest, now)
	}
}
