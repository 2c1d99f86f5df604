package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
)

// TestSwarmTakesEachNameOnce, in as long as it takes.
func TestSwarmTakesEachNameOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := make(map[string]int)
		got, err := swarm{limit: time.Hour}.run(t.Context(), 10*clients, "x", func(_ context.Context, _ int, resource string) error {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			seen[resource]++
			return nil
		})
		if err != nil || got.Leases != 10*clients || got.Took != 10*time.Second {
			t.Errorf("%+v, %v", got, err)
		}
		if len(seen) != 10*clients || seen["x-000000"] != 1 {
			t.Errorf("%d names, the first of them %d times", len(seen), seen["x-000000"])
		}
	})
}

func TestSwarmEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := swarm{limit: 5 * time.Second}.run(t.Context(), 1<<30, "x", func(context.Context, int, string) error {
			time.Sleep(2 * time.Second)
			return nil
		})
		if err != nil || got.Leases != 3*clients || got.Took != 6*time.Second {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestSwarmReportsErrors(t *testing.T) {
	broken := errors.New("broken")
	_, err := swarm{limit: time.Hour}.run(t.Context(), 1<<30, "x", func(context.Context, int, string) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
}

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
