package storetest

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

func loadedSnapshot(t *testing.T, s store.Store) leasehold.LSN {
	t.Helper()
	state, err := s.Load(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	if state.Table == nil {
		return 0
	}
	return state.Table.LSN()
}

func snapshotOfAnOldTerm(t *testing.T, s store.Store) {
	p := leadingPen(t, s, 2)
	mustAppend(t, s, p.next(10))
	for _, term := range []leasehold.Term{0, 1, 3} {
		snap := p.snapshot()
		snap.Term = term
		save(t, s, snap)
		if got := loadedSnapshot(t, s); got != 0 {
			t.Fatalf("a snapshot of term %d is saved in term 2", term)
		}
	}
	save(t, s, p.snapshot())
	if got := loadedSnapshot(t, s); got != 10 {
		t.Errorf("the snapshot is of lsn %d, want 10", got)
	}
	checkLoad(t, s, p)
}

func snapshotThatIsOlder(t *testing.T, s store.Store) {
	p := leadingPen(t, s, 1)
	mustAppend(t, s, p.next(10))
	old := p.snapshot()
	mustAppend(t, s, p.next(10))
	save(t, s, p.snapshot())
	mustAppend(t, s, p.next(10))
	save(t, s, old)
	save(t, s, p.snapshot())
	save(t, s, p.snapshot())
	if got := loadedSnapshot(t, s); got != 30 {
		t.Errorf("the snapshot is of lsn %d, want 30", got)
	}
	mustAppend(t, s, p.next(1))
	checkLoad(t, s, p)
}

func snapshotAheadOfLog(t *testing.T, s store.Store) {
	p := leadingPen(t, s, 1)
	p.next(10) // not appended
	if err := s.SaveSnapshot(t.Context(), p.snapshot()); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("a snapshot beyond the log: %v", err)
	}
	checkLoad(t, s, newPen(t, 1))
}

func history(t *testing.T, s store.Store) {
	if past, err := s.History(t.Context(), ns, 0, 10); err != nil || len(past) != 0 {
		t.Errorf("of nothing: %d changes (%v)", len(past), err)
	}
	p := leadingPen(t, s, 1)
	var log []table.Change
	for i := range 10 {
		b := p.next(i + 1)
		mustAppend(t, s, b)
		log = append(log, b.Changes...)
	}
	checkHistory(t, t, s, ns, log)
	for _, c := range []struct {
		before      leasehold.LSN
		most, n     int
		first, last leasehold.LSN
	}{
		{0, 3, 3, 55, 53},
		{56, 3, 3, 55, 53},
		{1000, 3, 3, 55, 53},
		{55, 1, 1, 54, 54},
		{3, 10, 2, 2, 1},
		{1, 10, 0, 0, 0},
		{0, 0, 0, 0, 0},
		{0, -1, 0, 0, 0},
	} {
		past, err := s.History(t.Context(), ns, c.before, c.most)
		if err != nil || len(past) != c.n || c.n > 0 && (past[0].Change.LSN != c.first || past[c.n-1].Change.LSN != c.last) {
			t.Errorf("before %d, at most %d: %d changes (%v), want %d", c.before, c.most, len(past), err, c.n)
		}
	}
}

// readersSeeOneInstant: during appends and snapshots every load can be replayed, and loads are monotonic.
func readersSeeOneInstant(t *testing.T, s store.Store) {
	lead(t, s, 1)
	var readers sync.WaitGroup
	var done atomic.Bool
	for range 3 {
		readers.Go(func() {
			last := leasehold.LSN(0)
			for again := true; again; {
				again = !done.Load()
				state, err := s.Load(t.Context(), ns)
				if err == nil {
					_, err = state.Replay()
				}
				if err != nil {
					t.Errorf("load: %v", err)
					return
				}
				if state.End() < last {
					t.Errorf("the log ended at %d and then at %d", last, state.End())
				}
				last = state.End()
			}
		})
	}
	p := newPen(t, 1)
	for i := range 60 {
		mustAppend(t, s, p.next(1+i%7*10))
		if i%4 == 3 {
			save(t, s, p.snapshot())
		}
	}
	done.Store(true)
	readers.Wait()
	checkLoad(t, s, p)
}
