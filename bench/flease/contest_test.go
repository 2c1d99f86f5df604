package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
)

// A runner needs a second for each lease.
type runner struct {
	held  int
	names []string
	fail  error
}

func (r *runner) acquire(_ context.Context, batch int, name string) (turn, error) {
	r.held += batch
	r.names = append(r.names, name)
	return turn{Leases: batch, Took: time.Duration(batch) * time.Second}, r.fail
}

func (r *runner) release(context.Context) error {
	r.held = 0
	return nil
}

func (*runner) close() {}

func TestReferee(t *testing.T) {
	a, b := &runner{}, &runner{}
	r := &referee{length: 10 * time.Second, progress: func(string, ...any) {}}
	turns, err := r.compete(t.Context(), []entry{{"a", a}, {"b", b}}, 3, 4)
	if err != nil {
		t.Fatal(err)
	}
	// Three batches of 4 seconds are the first that last for 10.
	want := turn{Leases: 12, Took: 12 * time.Second}
	for i, all := range turns {
		if len(all) != 3 || all[0] != want {
			t.Errorf("contestant %d had turns %v", i, all)
		}
	}
	if a.held != 0 || len(a.names) != 9 {
		t.Errorf("%d leases are held after %d batches", a.held, len(a.names))
	}
	names := slices.Concat(a.names, b.names)
	slices.Sort(names)
	if len(slices.Compact(names)) != 18 {
		t.Errorf("names are used again: %q", names)
	}
	a.fail = errors.New("broken")
	if _, err := r.compete(t.Context(), []entry{{"b", b}, {"a", a}}, 3, 4); !errors.Is(err, a.fail) || !strings.HasPrefix(err.Error(), "a: ") {
		t.Errorf("the error is %v", err)
	}
}

func TestGroups(t *testing.T) {
	const members = 15
	group := groupOf(members)
	for _, size := range groupSizes() {
		for proposer := 1; proposer <= members; proposer++ {
			first := group(resourceName(size, proposer, "b7", 1))
			if len(first) != size || !slices.Contains(first, flease.ID(proposer)) || !slices.IsSorted(first) || len(slices.Compact(slices.Clone(first))) != size {
				t.Errorf("%d wants a group of %d: %v", proposer, size, first)
			}
			if other := groupOf(members)(resourceName(size, proposer, "b8", 2)); !slices.Equal(first, other) {
				t.Errorf("the group of %d for %d is %v, and %v", size, proposer, first, other)
			}
		}
	}
	for _, unknown := range []string{"", "x", "03.01", "99.01.b7.000000", "03.16.b7.000000", "00.01.b7.000000", "03.00.b7.000000", "0x.01.b7.000000", "03-01-b7-000000"} {
		if got := group(unknown); got != nil {
			t.Errorf("%q has group %v", unknown, got)
		}
	}
}
