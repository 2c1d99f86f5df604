package actor

import (
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// fake has leases on all keys under one generation, or none if it is 0.
type fake struct {
	owner.Checker // nil: registers only check

	generation leasehold.Generation
	gap        bool // leases end before Held
}

func (f *fake) Check(key leasehold.Key) (owner.Lease, bool) {
	return owner.Lease{Lease: leasehold.Lease{Generation: f.generation}, Key: key}, f.generation != 0
}

func (f *fake) Held(l owner.Lease) bool { return !f.gap && l.Generation == f.generation }

// TestRegisters tests the obligations of a server.
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
		{fake{generation: 2}, func(*entry) {}, "", nil}, // the state is of an earlier lease
		{fake{generation: 2, gap: true}, set("c"), "", leasehold.ErrIndeterminate},
		{fake{generation: 1}, set("d"), "", leasehold.ErrNotOwner}, // late
	} {
		*leases = step.leases
		got, err := r.do("key-0", step.do)
		if got.Value != step.value || !errors.Is(err, step.err) || err == nil && got.Generation != step.leases.generation {
			t.Errorf("step %d: %+v, %v", i, got, err)
		}
	}
	r.drop([]leasehold.Lease{{Generation: 1}}, leasehold.CauseExpired)
	if len(r.entries) != 1 {
		t.Error("held state was dropped")
	}
	r.drop([]leasehold.Lease{{Generation: 2}}, leasehold.CauseExpired)
	if len(r.entries) != 0 {
		t.Error("lost state was kept")
	}
}

// TestLeasesOffNeverEnd: leases that are switched off do not end.
func TestLeasesOffNeverEnd(t *testing.T) {
	leases := &fake{}
	f := &forever{Checker: leases, had: make(map[leasehold.Key]owner.Lease)}
	if _, ok := f.Check(1); ok {
		t.Error("a check succeeds without a lease")
	}
	leases.generation = 3
	f.Check(1)
	leases.generation = 0
	if l, ok := f.Check(1); !ok || l.Generation != 3 || !f.Held(l) {
		t.Error("the check fails after the end of the lease")
	}
	if _, ok := f.Check(2); ok {
		t.Error("a check of another key succeeds")
	}
}
