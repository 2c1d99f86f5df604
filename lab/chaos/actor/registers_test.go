package actor

import (
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// fake is leases on all keys under one generation, or none if it is 0.
type fake struct {
	owner.Checker // nil: registers only check

	generation leasehold.Generation
	gap        bool // leases end before Held
}

func (f *fake) Check(key leasehold.Key) (owner.Lease, bool) {
	return owner.Lease{Lease: leasehold.Lease{Generation: f.generation}, Key: key}, f.generation != 0
}

func (f *fake) Held(l owner.Lease) bool { return !f.gap && l.Generation == f.generation }

// TestRegisters do what a server is obliged to do.
func TestRegisters(t *testing.T) {
	leases := &fake{}
	r := &registers{leases: leases, entries: make(map[string]entry)}
	set := func(value string) func(*entry) { return func(e *entry) { e.value = value } }
	for i, step := range []struct {
		leases fake
		do     func(*entry)
		value  string
		err    error
	}{
		{fake{}, set("a"), "", leasehold.ErrNotOwner},
		{fake{generation: 1}, func(*entry) {}, "", nil},
		{fake{generation: 1}, set("b"), "b", nil},
		{fake{generation: 1}, func(*entry) {}, "b", nil},
		{fake{generation: 2}, func(*entry) {}, "", nil}, // what was there is of another lease
		{fake{generation: 2, gap: true}, set("c"), "", leasehold.ErrIndeterminate},
		{fake{generation: 1}, set("d"), "", leasehold.ErrNotOwner}, // it is late
	} {
		*leases = step.leases
		got, err := r.do("key-0", step.do)
		if got.Value != step.value || !errors.Is(err, step.err) || err == nil && got.Generation != step.leases.generation {
			t.Errorf("step %d: %+v, %v", i, got, err)
		}
	}
	r.forget([]leasehold.Lease{{Generation: 1}}, leasehold.CauseExpired)
	if len(r.entries) != 1 {
		t.Error("what is held was forgotten")
	}
	r.forget([]leasehold.Lease{{Generation: 2}}, leasehold.CauseExpired)
	if len(r.entries) != 0 {
		t.Error("what is lost was kept")
	}
}

// TestForever: leases that are switched off never end.
func TestForever(t *testing.T) {
	leases := &fake{}
	f := &forever{Checker: leases, had: make(map[leasehold.Key]owner.Lease)}
	if _, ok := f.Check(1); ok {
		t.Error("it has what it never had")
	}
	leases.generation = 3
	f.Check(1)
	leases.generation = 0
	if l, ok := f.Check(1); !ok || l.Generation != 3 || !f.Held(l) {
		t.Error("it has noticed that its lease is over")
	}
	if _, ok := f.Check(2); ok {
		t.Error("it has another key")
	}
}
