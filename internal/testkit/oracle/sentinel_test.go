package oracle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// someLeases holds some keys.
type someLeases map[leasehold.Key]leasehold.Generation

func (l someLeases) Check(key leasehold.Key) (owner.Lease, bool) {
	g := l[key]
	return owner.Lease{Lease: leasehold.Lease{Range: leasehold.All, Generation: g}, Key: key}, g != 0
}

// The sentinel records starts and ends, and continuing tenures only in complete rounds.
func TestSentinelRecordsChanges(t *testing.T) {
	var told []Record
	held := someLeases{1: 5, 2: 6}
	s := NewSentinel(held, leasehold.Session{9}, []leasehold.Key{1, 2, 3}, func(r ...Record) error {
		told = append(told, r...)
		return nil
	})
	type claim struct {
		key leasehold.Key
		g   leasehold.Generation
		on  bool // it continued after its start
	}
	for i, step := range []struct {
		change func()
		all    bool
		want   []claim
	}{
		{func() {}, false, []claim{{1, 5, false}, {2, 6, false}}},
		{func() {}, false, nil},
		{func() {}, true, []claim{{1, 5, true}, {2, 6, true}}},
		{func() {}, false, nil},
		{func() { held[1] = 7 }, false, []claim{{1, 5, true}, {1, 7, false}}},
		{func() { held[2], held[3] = 0, 8 }, false, []claim{{2, 6, true}, {3, 8, false}}},
		{func() { clear(held) }, true, []claim{{1, 7, true}}}, // the tenure of 3 is recorded completely
		{func() {}, true, nil},
	} {
		told = nil
		step.change()
		if err := s.round(step.all); err != nil {
			t.Fatal(err)
		}
		var got []claim
		for _, r := range told {
			if r.About != Belief || r.Session != s.session || r.Check.Before > r.Check.After || r.Held.Before > r.Held.After {
				t.Errorf("step %d: record %+v", i, r)
			}
			got = append(got, claim{r.Key, r.Generation, r.Held != r.Check})
		}
		if len(got) != len(step.want) {
			t.Fatalf("step %d: recorded %+v, want %+v", i, got, step.want)
		}
		for j := range got {
			if got[j] != step.want[j] {
				t.Errorf("step %d: recorded %+v, want %+v", i, got, step.want)
			}
		}
	}
}

// The size and the rate of writes are limited for any number of keys.
func TestSentinelIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		held, records := someLeases{}, 0
		for key := range leasehold.Key(n) {
			held[key] = 1
		}
		s := NewSentinel(held, leasehold.Session{9}, nil, func(r ...Record) error {
			if len(r) > MaxBatch {
				t.Errorf("%d records at once", len(r))
			}
			records += len(r)
			return nil
		})
		for key := range held {
			s.keys = append(s.keys, key)
		}
		s.tenures = make([]keyTenure, n)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
		often := int(10*time.Second/reportInterval) + 1
		if records < n*often/2 || records > n*often {
			t.Errorf("%d records of %d keys in 10 s, want about %d", records, n, n*often)
		}
	})
}

// stopped are leases of a process that is stopped once during a round.
type stopped struct {
	someLeases
	rounds int
	last   time.Time     // of the last check
	unseen time.Duration // maximum time between checks
}

func (l *stopped) Check(key leasehold.Key) (owner.Lease, bool) {
	if l.rounds++; l.rounds > 1 {
		l.unseen = max(l.unseen, time.Since(l.last))
	}
	if l.rounds == 10 {
		time.Sleep(5 * time.Second)
	}
	l.last = time.Now()
	return l.someLeases.Check(key)
}

// After a stop of the process during a round the next round is not delayed, because stale leases are most likely
// then.
func TestSentinelPauseIsBoundedAfterStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := &stopped{someLeases: someLeases{1: 1}}
		s := NewSentinel(held, leasehold.Session{9}, []leasehold.Key{1}, func(...Record) error { return nil })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
		if held.rounds < 11 || held.unseen > maxPause {
			t.Errorf("%d rounds, no check for %v", held.rounds, held.unseen)
		}
	})
}

func TestSentinelEndsIfNobodyListens(t *testing.T) {
	gone := errors.New("the pipe is broken")
	s := NewSentinel(someLeases{1: 1}, leasehold.Session{9}, []leasehold.Key{1}, func(...Record) error { return gone })
	if err := s.Run(t.Context()); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}
