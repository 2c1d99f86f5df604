package manager_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A namespace that replaces a lost one never assigns a generation of that again, under any leader.
func TestGenerationsBeginAfter(t *testing.T) {
	const lost leasehold.Generation = 1 << 40
	after := func(g leasehold.Generation) func(*manager.Config) {
		return func(c *manager.Config) { c.After = g }
	}
	l := newPaperLeader(t, after(lost))
	l.join("a")
	l.join("b")
	if l.machine.Table().Newest() <= lost {
		t.Fatalf("the newest generation is %d, want more than %d", l.machine.Table().Newest(), lost)
	}
	for r, e := range l.machine.Table().All() {
		if !e.Vacant() && e.Generation <= lost {
			t.Errorf("%v has generation %d, want more than %d", r, e.Generation, lost)
		}
	}
	// A table with newer generations continues from those.
	next := newPaperSuccessor(t, 2, &storage.State{Term: 2, Changes: l.log}, after(5))
	before := next.machine.Table().Newest()
	next.join("c")
	for _, c := range next.log[len(l.log):] {
		if c.Kind == table.Granted && c.Generation <= before {
			t.Errorf("%v was granted with generation %d, and %d was assigned before", c.Range, c.Generation, before)
		}
	}
}

// A volatile table uses only the numbers of its leader's term: those of the next term belong to another leader.
func TestVolatileGenerationsAreOfTheTerm(t *testing.T) {
	first := newPaperLeader(t, func(c *manager.Config) { c.Volatile, c.After = true, 1<<40 })
	first.join("a")
	if got := first.machine.Table().Newest(); got >= 1<<40 {
		t.Errorf("the newest generation is %d, from beyond the term", got)
	}
}
