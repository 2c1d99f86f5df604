package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
)

// TestMain lets the test's binary run in roles, as the program does.
func TestMain(m *testing.M) {
	proc.Play(roles())
	os.Exit(m.Run())
}

func TestFloor(t *testing.T) {
	f, err := startFloor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got, err := f.Acquire(t.Context(), proposers*1000, "b1")
		if err != nil || got.Leases != proposers*1024 || got.Took <= 0 {
			t.Errorf("%+v, %v", got, err)
		}
		if err := f.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	f.close()
	if _, err := f.Acquire(t.Context(), 3, "b2"); err == nil {
		t.Error("processes that have ended can be called")
	}
}

func TestFlease(t *testing.T) {
	f, err := startFlease(t.Context(), proposers, 2*time.Second, true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for _, name := range []string{"b1", "b2"} {
		got, err := f.Acquire(t.Context(), proposers*50, name)
		if err != nil || got.Leases == 0 || got.Leases > proposers*50 || got.Took <= 0 || got.CPU < 0 {
			t.Errorf("%+v, %v", got, err)
		}
		if err := f.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestTogether(t *testing.T) {
	at := func(n int64) time.Time { return time.Unix(0, n) }
	got := together([]Batch{{3, at(1_000), at(5_000), 7}, {4, at(900), at(4_000), 1}})
	if diff := cmp.Diff(locks.Turn{Leases: 7, Took: 4_100, CPU: 8}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGroups(t *testing.T) {
	group := groupOf(processes)
	for _, size := range groupSizes() {
		for proposer := 1; proposer <= processes; proposer++ {
			first := group(resourceName(size, proposer, "b7", 1))
			if len(first) != size || !slices.Contains(first, flease.ID(proposer)) || !slices.IsSorted(first) || len(slices.Compact(slices.Clone(first))) != size {
				t.Errorf("%d wants a group of %d: %v", proposer, size, first)
			}
			if other := groupOf(processes)(resourceName(size, proposer, "b8", 2)); !slices.Equal(first, other) {
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

func TestWriter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "written")
	w, err := proc.Start(t.Context(), roleWriter, file)
	if err != nil {
		t.Fatal(err)
	}
	var got Written
	for range 2 {
		if err := w.Call("Write", nil, nil); err != nil {
			t.Error(err)
		}
		err := w.Call("Rest", nil, &got)
		if err != nil || got.Bytes%block != 0 || got.Bytes != block*got.Syncs || got.Took <= 0 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if err := w.Call("Rest", nil, &got); err == nil {
		t.Error("it rests twice")
	}
	if err := w.Call("Write", nil, nil); err != nil {
		t.Error(err)
	}
	w.Close() // while it writes
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestMembersReportErrors(t *testing.T) {
	for role, config := range map[string]any{
		roleFloor:  FloorConfig{7, []string{"127.0.0.1:1"}},
		roleFlease: FleaseConfig{Self: 9, Members: []string{"127.0.0.1:1"}},
		roleWriter: filepath.Join(t.TempDir(), "no", "such", "directory"),
	} {
		if _, err := proc.Start(t.Context(), role, config); err == nil || !strings.HasPrefix(err.Error(), role+" ") {
			t.Errorf("%s: the error is %v", role, err)
		}
	}
}
