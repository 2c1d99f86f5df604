package storage_test

import (
	"math"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"pgregory.net/rapid"
)

// All numbers of a term are above those of all terms before it, and a term that is not spent has
// enough numbers.
func TestTermsDoNotOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		term := leasehold.Term(rapid.Uint64Range(1, 1<<42).Draw(t, "term"))
		n := rapid.IntRange(1, 1<<20).Draw(t, "n")
		lsn, generation := storage.First(term)
		nextLSN, next := storage.First(term + 1)
		used := rapid.Uint64Range(0, 1<<20).Draw(t, "used")
		at, newest := lsn+leasehold.LSN(used), generation+leasehold.Generation(used)
		if !storage.Spent(term, at, newest, n) && (at+leasehold.LSN(n) >= nextLSN || newest+leasehold.Generation(n) >= next) {
			t.Fatalf("after %d numbers, %d more exceed the term", used, n)
		}
		if used == 0 && n < 1<<20 && storage.Spent(term, at, newest, n) {
			t.Fatalf("a new term has fewer than %d numbers", n)
		}
	})
}

// TestSpent: the last number of a term is not assigned.
func TestSpent(t *testing.T) {
	const all = 1 << 20
	lsn, generation := storage.First(7)
	for _, test := range []struct {
		lsn        leasehold.LSN
		generation leasehold.Generation
		n          int
		want       bool
	}{
		{lsn, generation, all - 1, false},
		{lsn, generation, all, true},
		{lsn + 1, generation, all - 1, true},
		{lsn, generation + 1, all - 1, true},
		{lsn + 1, generation + 1, all - 2, false},
	} {
		if got := storage.Spent(7, test.lsn, test.generation, test.n); got != test.want {
			t.Errorf("Spent(%d, %d, %d) = %t", test.lsn-lsn, test.generation-generation, test.n, got)
		}
	}
}

// Generations are fencing tokens in systems with signed integers.
func TestGenerationsStaySmall(t *testing.T) {
	in2200 := leasehold.Term(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	if _, g := storage.First(in2200); g > math.MaxInt64 {
		t.Errorf("generation %d", g)
	}
}

func TestUnknownState(t *testing.T) {
	s := storage.State{Term: 7, Unknown: true}
	if lsn, _ := storage.First(7); s.End() != lsn {
		t.Errorf("the log ends at %d, want %d", s.End(), lsn)
	}
	if _, err := s.Replay(); leasehold.KindOf(err) != leasehold.ErrInternal {
		t.Errorf("Replay of an unknown state: %v", err)
	}
}
