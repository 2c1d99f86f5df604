package storage_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

var ann = &table.Holder{Owner: "ann", Session: leasehold.Session{1}, Addr: "a", Weight: 1}

// history has four changes, starting from the empty table.
var history = []table.Change{
	{LSN: 1, Kind: table.Granted, Range: leasehold.All, Generation: 1, Holder: ann},
	{LSN: 2, Kind: table.Vacated, Range: leasehold.Range{Start: 10}, Generation: 1, Holder: ann},
	{LSN: 3, Kind: table.Granted, Range: leasehold.Range{Start: 10}, Generation: 2, Holder: ann},
	{LSN: 4, Kind: table.Vacated, Range: leasehold.Range{Limit: 5}, Generation: 1, Holder: ann},
}

// tableAt returns the table after the first n changes.
func tableAt(t *testing.T, n int) *table.Table {
	t.Helper()
	tab := table.New()
	for i := range history[:n] {
		if err := tab.Apply(&history[i]); err != nil {
			t.Fatal(err)
		}
	}
	return tab
}

// contents returns the content of a table in a comparable form.
func contents(t *table.Table) any {
	type row struct {
		Range leasehold.Range
		Entry table.Entry
	}
	out := struct {
		LSN    leasehold.LSN
		Newest leasehold.Generation
		Rows   []row
	}{LSN: t.LSN(), Newest: t.Newest()}
	for r, e := range t.All() {
		out.Rows = append(out.Rows, row{r, e})
	}
	return out
}

// Replay returns the same table for a snapshot at any LSN.
func TestReplay(t *testing.T) {
	for n := range len(history) + 1 {
		state := storage.State{Table: tableAt(t, n), Changes: history[n:]}
		if n == 0 {
			state.Table = nil
		}
		got, err := state.Replay()
		if err != nil {
			t.Fatalf("a snapshot of %d changes: %v", n, err)
		}
		if diff := cmp.Diff(contents(tableAt(t, len(history))), contents(got)); diff != "" {
			t.Errorf("a snapshot of %d changes (-want +got):\n%s", n, diff)
		}
		if got := state.End(); got != leasehold.LSN(len(history)) {
			t.Errorf("a snapshot of %d changes: the log ends at %d, want %d", n, got, len(history))
		}
	}
}

func TestReplayOfNothing(t *testing.T) {
	var state storage.State
	got, err := state.Replay()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(table.New()), contents(got)); diff != "" || state.End() != 0 {
		t.Errorf("the log ends at %d (-want +got):\n%s", state.End(), diff)
	}
}

// Replay returns a separate table: the snapshot is not changed.
func TestReplayLeavesSnapshot(t *testing.T) {
	state := storage.State{Table: tableAt(t, 2), Changes: history[2:]}
	for range 2 {
		got, err := state.Replay()
		if err != nil {
			t.Fatal(err)
		}
		if got == state.Table {
			t.Fatal("the snapshot itself was changed")
		}
	}
	if diff := cmp.Diff(contents(tableAt(t, 2)), contents(state.Table)); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
	same := storage.State{Table: tableAt(t, 2)}
	if got, err := same.Replay(); err != nil || got == same.Table {
		t.Errorf("without changes: the snapshot itself is returned: %t, error %v", got == same.Table, err)
	}
}

func TestReplayRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		state storage.State
	}{
		{"a log without its beginning", storage.State{Changes: history[1:]}},
		{"a log with a gap", storage.State{Table: tableAt(t, 1), Changes: history[2:]}},
		{"a log that overlaps the snapshot", storage.State{Table: tableAt(t, 2), Changes: history[1:]}},
		{"a log of another history", storage.State{Changes: []table.Change{history[0], {LSN: 2, Kind: table.Vacated, Generation: 7, Holder: ann}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := c.state.Replay(); !errors.Is(err, leasehold.ErrInternal) {
				t.Errorf("error %v, want %v", err, leasehold.ErrInternal)
			}
		})
	}
}

func TestBatchLast(t *testing.T) {
	b := storage.Batch{Prev: 7, Changes: history}
	if got := b.Last(); got != 11 {
		t.Errorf("the batch ends at %d, want 11", got)
	}
}

func TestOutcomeString(t *testing.T) {
	for o, want := range map[storage.Outcome]string{
		storage.Done: "done", storage.Conflict: "conflict", storage.Unknown: "unknown", 0: "outcome?", 9: "outcome?",
	} {
		if got := o.String(); got != want {
			t.Errorf("outcome %d is formatted as %q, want %q", uint8(o), got, want)
		}
	}
}
