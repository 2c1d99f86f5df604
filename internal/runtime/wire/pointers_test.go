package wire_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"pgregory.net/rapid"
)

// A table built from any snapshot and later changes equals the leader's table at the same LSN, although
// each message has its own holders, as the package comment states.
func TestTablesFromMessagesEqualLeaders(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		all := drawer{r}.history(30)
		at := rapid.IntRange(0, len(all)).Draw(r, "snapshot")
		got, err := wire.ToTable(through(t, wire.FromTable(tableAfter(r, all[:at]))), limits)
		if err != nil {
			t.Fatal(err)
		}
		for at < len(all) {
			n := rapid.IntRange(1, len(all)-at).Draw(r, "message")
			cs, err := wire.ToChanges(through(t, wire.FromChanges(leasehold.LSN(at), all[at:at+n])), limits)
			if err != nil {
				t.Fatal(err)
			}
			for i := range cs {
				at++
				if err := got.Apply(&cs[i]); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(contents(tableAfter(r, all[:at])), contents(got)); diff != "" {
					t.Fatalf("at lsn %d (-leader +lookup):\n%s", at, diff)
				}
			}
		}
	})
}

// Equal holders are sent once, and become one pointer even if a peer sends them twice.
func TestEqualHoldersAreOne(t *testing.T) {
	ann := table.Holder{Owner: "ann", Session: leasehold.Session{1}, Addr: "a:1", Weight: 1}
	twin, bob := ann, ann
	bob.Session = leasehold.Session{2}
	cs := []table.Change{
		{LSN: 1, Kind: table.Granted, Range: leasehold.Range{Limit: 1}, Generation: 1, Holder: &ann},
		{LSN: 2, Kind: table.Granted, Range: leasehold.Range{Start: 1, Limit: 2}, Generation: 2, Holder: &twin},
		{LSN: 3, Kind: table.Granted, Range: leasehold.Range{Start: 2}, Generation: 3, Holder: &bob},
	}
	message := wire.FromChanges(0, cs)
	if n := len(message.GetHolders()); n != 2 {
		t.Errorf("changes carry %d holders, want 2", n)
	}
	if n := len(wire.FromTable(tableAfter(t, cs)).GetHolders()); n != 2 {
		t.Errorf("the table carries %d holders, want 2", n)
	}

	message.Holders = append(message.Holders, through(t, wire.FromHolder(&ann)))
	message.HeldBy[1] = 2
	got, err := wire.ToChanges(message, limits)
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Holder != got[1].Holder || got[0].Holder == got[2].Holder {
		t.Errorf("holders %p %p %p: want the first two equal", got[0].Holder, got[1].Holder, got[2].Holder)
	}
}

// Rows of one range are merged.
func TestEqualAdjacentRowsMerge(t *testing.T) {
	ann := &table.Holder{Owner: "ann", Session: leasehold.Session{1}, Addr: "a:1", Weight: 1}
	m := wire.FromTable(tableAfter(t, []table.Change{{LSN: 1, Kind: table.Granted, Generation: 1, Holder: ann}}))
	m.Holders = append(m.Holders, wire.FromHolder(ann))
	m.Starts = append(m.Starts, 7)
	m.Generations, m.Lost = slices.Repeat(m.Generations, 2), slices.Repeat(m.Lost, 2)
	m.HeldBy = []uint32{1, 2}
	got, err := wire.ToTable(m, limits)
	if err != nil {
		t.Fatal(err)
	}
	if got.Len() != 1 {
		t.Errorf("%d ranges, want 1", got.Len())
	}
}
