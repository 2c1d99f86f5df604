package memcatalog_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

func tableAt(t *testing.T, lsn leasehold.LSN, newest leasehold.Generation) *table.Table {
	t.Helper()
	out, err := table.Restore(lsn, newest, keyrange.NewMap(table.Entry{}))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func batch(term leasehold.Term, at leasehold.LSN, n int) *storage.Batch {
	b := &storage.Batch{Namespace: "x", Term: term, Prev: at}
	for i := range n {
		b.Changes = append(b.Changes, table.Change{LSN: at + leasehold.LSN(i) + 1})
	}
	return b
}

// A log starts with the leader's first snapshot, accepts only changes that follow its end, and
// ends with the leadership.
func TestLogs(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		ctx := t.Context()
		members := []*member{cl.start(0), cl.start(1), cl.start(2)}
		leader, _ := cl.leader(members...)
		term, _ := leader.leads()
		first, newest := storage.First(term)
		appends := func(b *storage.Batch, want storage.Outcome) {
			t.Helper()
			if o, err := leader.Append(ctx, b); o != want || err != nil {
				t.Errorf("%v, %v, want %v", o, err, want)
			}
		}
		state := func() *storage.State {
			t.Helper()
			s, err := leader.Load(ctx, "x")
			if err != nil || s.Term != term {
				t.Fatalf("%+v: %v", s, err)
			}
			return s
		}
		if !state().Unknown {
			t.Error("a namespace has a log before the first snapshot")
		}
		appends(batch(term, first, 1), storage.Conflict)
		save := func(at leasehold.LSN, in leasehold.Term) {
			t.Helper()
			if err := leader.SaveSnapshot(ctx, &storage.Snapshot{Namespace: "x", Term: in, Table: tableAt(t, at, newest)}); err != nil {
				t.Error(err)
			}
		}
		save(first, term-1)
		if !state().Unknown {
			t.Error("a snapshot of an earlier term was accepted")
		}
		save(first, term)
		appends(batch(term, first, 3), storage.Done)
		appends(batch(term, first, 3), storage.Conflict) // duplicate
		appends(batch(term-1, first+3, 1), storage.Conflict)
		appends(batch(term, first+3, 2), storage.Done)
		if s := state(); s.Unknown || len(s.Changes) != 5 || s.End() != first+5 {
			t.Errorf("%d changes up to %d", len(s.Changes), s.End())
		}
		if end, err := leader.End(ctx, "x"); err != nil || end.LSN != first+5 || end.Term != term {
			t.Errorf("%+v, %v", end, err)
		}
		save(first+4, term)
		save(first+2, term) // stale: ignored
		save(first+9, term) // beyond the end: ignored
		if s := state(); len(s.Changes) != 1 || s.End() != first+5 || s.Changes[0].LSN != first+5 {
			t.Errorf("after the snapshot: %d changes up to %d", len(s.Changes), s.End())
		}
		past, err := leader.History(ctx, "x", first+5, 3)
		if err != nil || len(past) != 3 || past[0].Change.LSN != first+4 || past[2].Change.LSN != first+2 {
			t.Errorf("history: %+v, %v", past, err)
		}
		leader.stepDown()
		next, _ := cl.leader(members...)
		if s, err := next.Load(ctx, "x"); err != nil || !s.Unknown || s.Term <= term {
			t.Errorf("the next leader has %+v: %v", s, err)
		}
		if next == leader {
			return
		}
		if _, err := leader.Load(ctx, "x"); leasehold.KindOf(err) != leasehold.ErrNotLeader {
			t.Errorf("load by a former leader: %v", err)
		}
		appends(batch(term, first+5, 1), storage.Conflict)
	})
}
