package report

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRounds: every contestant has a turn in each round, and the first one rotates.
func TestRounds(t *testing.T) {
	var order []int
	err := Rounds(t.Context(), 4, 3, func(_, i int) error {
		order = append(order, i)
		return nil
	})
	if diff := cmp.Diff([]int{0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2}, order); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestRoundsEnd(t *testing.T) {
	broken := errors.New("broken")
	turns := 0
	err := Rounds(t.Context(), 4, 3, func(_, i int) error {
		turns++
		if i == 1 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || turns != 2 {
		t.Errorf("%v after %d turns, want %v after 2", err, turns, broken)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	err = Rounds(ctx, 4, 3, func(int, int) error { cancel(broken); return nil })
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the cause", err)
	}
}

func TestCompete(t *testing.T) {
	var kept []byte
	all := []Contestant{
		{Name: "adds", Run: func(n int) int { return n }},
		{Name: "allocates", Run: func(n int) int {
			for range n {
				kept = make([]byte, 64)
			}
			return len(kept)
		}},
	}
	var rounds []int
	standings, err := Compete(t.Context(), all, 3, time.Microsecond, func(round int) { rounds = append(rounds, round) })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{0, 0, 1, 1, 2, 2}, rounds); diff != "" {
		t.Error(diff)
	}
	for i, s := range standings {
		if s.Name != all[i].Name || s.Nanoseconds.Turns != 3 || len(s.Turns) != 3 || s.Nanoseconds.Median <= 0 {
			t.Errorf("%+v", s)
		}
	}
	if standings[1].Allocations < 1 {
		t.Errorf("%v allocations, want 1", standings[1].Allocations)
	}
}

func TestOnAllCores(t *testing.T) {
	for _, n := range []int{0, 1, 7, 1000} {
		if got := OnAllCores(n, func(_, n int) int { return n }); got != n {
			t.Errorf("of %d, %d were done", n, got)
		}
	}
}
