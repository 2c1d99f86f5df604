package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

func recordRoundTrip(t *testing.T, s store.Store) {
	for _, fresh := range []bool{true, false} {
		if got, err := s.Record(t.Context(), fresh); err != nil || got != (storage.Record{}) {
			t.Fatalf("record before the first write: %+v (%v)", got, err)
		}
	}
	want := storage.Record{Term: 7, Leader: "m1", Session: leasehold.Session{1, 2}, Beat: 9, Wait: 3 * time.Second, Resigned: true, At: 1_800_000_000, Floor: 1 << 52, LostBelow: 1 << 51, Boot: "b", Uptime: time.Hour, Store: storage.Identity{Cluster: "c", Directory: "d"}}
	v, outcome, err := s.Swap(t.Context(), 0, want)
	wantOutcome(t, "swap", storage.Done, outcome, err)
	want.Version = v
	for _, fresh := range []bool{true, false} {
		got, err := s.Record(t.Context(), fresh)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("fresh: %t, %v (-want +got):\n%s", fresh, err, diff)
		}
	}
}

func swapGuards(t *testing.T, s store.Store) {
	first := lead(t, s, 1)
	second, outcome, err := s.Swap(t.Context(), first, storage.Record{Term: 1, Leader: "m1", Beat: 1})
	wantOutcome(t, "renewal", storage.Done, outcome, err)
	if second <= first {
		t.Errorf("version %d after %d", second, first)
	}
	for name, stale := range map[string]storage.Version{"none": 0, "an old one": first, "one to come": second + 1} {
		_, outcome, err = s.Swap(t.Context(), stale, storage.Record{Term: 2, Leader: "m2"})
		wantOutcome(t, "swap of "+name, storage.Conflict, outcome, err)
		_, outcome, err = s.Swap(t.Context(), stale, storage.Record{Term: 1, Leader: "m2"})
		wantOutcome(t, "swap within the term of "+name, storage.Conflict, outcome, err)
	}
	third, outcome, err := s.Swap(t.Context(), second, storage.Record{Term: 2, Leader: "m2"})
	wantOutcome(t, "takeover", storage.Done, outcome, err)
	if third <= second {
		t.Errorf("version %d after %d", third, second)
	}
	_, outcome, err = s.Swap(t.Context(), third, storage.Record{Term: 1, Leader: "m1"})
	if outcome != storage.Conflict || leasehold.KindOf(err) != leasehold.ErrStale {
		t.Errorf("swap with an older term: %v, %v", outcome, err)
	}
	if got, err := s.Record(t.Context(), true); err != nil || got.Leader != "m2" || got.Version != third {
		t.Errorf("final record: %+v (%v)", got, err)
	}
}

func oneSwapperWins(t *testing.T, s store.Store) {
	version := lead(t, s, 1)
	for round := range 5 {
		var mu sync.Mutex
		var winners []storage.Record
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				next := storage.Record{Term: leasehold.Term(2 + round), Leader: storage.ManagerID(rune('a' + i))}
				v, outcome, err := s.Swap(t.Context(), version, next)
				switch {
				case outcome == storage.Done:
					next.Version = v
					mu.Lock()
					winners = append(winners, next)
					mu.Unlock()
				case outcome != storage.Conflict:
					t.Errorf("swap: %v, %v", outcome, err)
				}
			})
		}
		all.Wait()
		if len(winners) != 1 {
			t.Fatalf("%d swaps of one version succeeded: %+v", len(winners), winners)
		}
		got, err := s.Record(t.Context(), true)
		if diff := cmp.Diff(winners[0], got); err != nil || diff != "" {
			t.Fatalf("record: %v (-want +got):\n%s", err, diff)
		}
		version = got.Version
	}
}

// watchHints: a watch may miss records, but not all.
func watchHints(t *testing.T, s store.Store) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	version := lead(t, s, 1)
	hints := make(chan storage.Record, 1)
	var watching sync.WaitGroup
	watching.Go(func() {
		s.WatchRecord(ctx, func(r storage.Record) {
			select {
			case hints <- r:
			default:
			}
		})
	})
	written := map[storage.Version]uint64{}
	for beat, seen := uint64(1), false; !seen; beat++ { // until the watch has started
		v, outcome, err := s.Swap(ctx, version, storage.Record{Term: 1, Leader: "m1", Beat: beat})
		wantOutcome(t, "renewal", storage.Done, outcome, err)
		version, written[v] = v, beat
		select {
		case r := <-hints:
			if seen = true; written[r.Version] != r.Beat || r.Leader != "m1" {
				t.Errorf("a hint of %+v, which was not written", r)
			}
		case <-time.After(20 * time.Millisecond):
		}
	}
	cancel()
	watching.Wait()
}
