package lookup_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// found returns the table of a diskless leader after its census. Its log starts at LSN 1000, above all
// LSNs before.
func found(t *testing.T, entries ...table.Change) *table.Table {
	t.Helper()
	m := keyrange.NewMap(table.Entry{Lost: 1000})
	for _, c := range entries {
		m.Set(c.Range, table.Entry{Generation: c.Generation, Holder: c.Holder, Lost: 1000, Adopted: c.Generation})
	}
	out, err := table.Restore(1000, 1000, m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A lookup that switches to such a leader reports exactly the ranges as lost whose generation differs from that in
// its table.
func TestCallerGoesOverToAnotherLog(t *testing.T) {
	kept := table.Change{Range: leasehold.Range{Start: 100, Limit: 200}, Generation: 2, Holder: fuzzHolder(1)}
	other := table.Change{Range: leasehold.Range{Start: 50, Limit: 100}, Generation: 9, Holder: fuzzHolder(2)}
	moved := table.Change{LSN: 1001, Kind: table.Moved, Range: kept.Range, Generation: 1001, Holder: fuzzHolder(2), From: fuzzHolder(1)}
	for _, c := range []struct {
		name  string
		table *table.Table
		want  []leasehold.Range // of the losses
	}{
		{"no claims", found(t), []leasehold.Range{{Limit: 100}, {Start: 100}}},
		{"a lease is unchanged", found(t, kept), []leasehold.Range{{Limit: 100}, {Start: 200}}},
		{"a lease has another owner", found(t, kept, other), []leasehold.Range{{Limit: 50}, {Start: 50, Limit: 100}, {Start: 200}}},
		{"a range has moved since", applied(t, found(t, kept), moved), []leasehold.Range{{Limit: 100}, {Start: 200}}},
		{"a range was lost since", applied(t, found(t, kept), moved, table.Change{
			LSN: 1002, Kind: table.Vacated, Range: kept.Range, Generation: 1001, Holder: fuzzHolder(2), Cause: leasehold.CauseExpired,
		}), []leasehold.Range{{Limit: 100}, {Start: 100, Limit: 200}, {Start: 200}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := callerAt(t, 2)
			losses := lossesOf(l, &protocol.LookupReply{Namespace: "n", Leader: "m", Term: 9, LSN: c.table.LSN(), Snapshot: c.table})
			if got, want := keyrange.NewSet(losses...), keyrange.NewSet(c.want...); len(got.Subtract(want)) > 0 || len(want.Subtract(got)) > 0 {
				t.Errorf("losses %v, want %v", losses, c.want)
			}
		})
	}
}

// Between two tables of the leader's own log losses are found as usual.
func TestCallerFollowsAFoundLog(t *testing.T) {
	kept := table.Change{Range: leasehold.All, Generation: 2, Holder: fuzzHolder(1)}
	l := newCaller(t)
	first := found(t, kept)
	lossesOf(l, &protocol.LookupReply{Namespace: "n", Leader: "m", Term: 9, LSN: 1000, Snapshot: first})
	moved := table.Change{LSN: 1001, Kind: table.Moved, Range: leasehold.Range{Limit: 5}, Generation: 1001, Holder: fuzzHolder(2), From: fuzzHolder(1)}
	if losses := lossesOf(l, &protocol.LookupReply{Namespace: "n", Leader: "m", Term: 9, LSN: 1001, Snapshot: applied(t, first, moved)}); len(losses) > 0 {
		t.Errorf("losses %v, want none", losses)
	}
}

func applied(t *testing.T, from *table.Table, changes ...table.Change) *table.Table {
	t.Helper()
	out := from.Clone()
	for i := range changes {
		if err := out.Apply(&changes[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// lossesOf delivers a reply to a lookup, and returns the losses that it emits.
func lossesOf(c *caller, r *protocol.LookupReply) (out []leasehold.Range) {
	actions, _ := c.machine.Step(second, lookup.Reply{LookupReply: r})
	for _, a := range actions {
		if l, ok := a.(lookup.Losses); ok {
			for i := range l.Losses {
				out = append(out, l.Losses[i].Range)
			}
		}
	}
	return out
}
