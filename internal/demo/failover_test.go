package demo

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

func TestEndedWithin(t *testing.T) {
	lease := func(start, limit, generation uint64) *leaseholdv1.Lease {
		return &leaseholdv1.Lease{Start: start, Limit: limit, Generation: generation}
	}
	was := lease(100, 200, 5)
	for _, test := range []struct {
		name  string
		after []*leaseholdv1.Lease
		key   leasehold.Key
		ended bool
	}{
		{"goes on", []*leaseholdv1.Lease{lease(0, 100, 4), lease(100, 200, 5), lease(200, 0, 6)}, 0, false},
		{"was split", []*leaseholdv1.Lease{lease(0, 100, 4), lease(100, 150, 5), lease(150, 200, 5), lease(200, 0, 6)}, 0, false},
		{"ended on a part", []*leaseholdv1.Lease{lease(0, 100, 4), lease(100, 150, 5), lease(150, 0, 7)}, 150, true},
		{"ended, and nobody has it", []*leaseholdv1.Lease{lease(0, 0, 0)}, 100, true},
	} {
		var after []*leaseholdv1.HeldRange
		for _, l := range test.after {
			after = append(after, &leaseholdv1.HeldRange{Lease: l})
		}
		if key, ended := endedWithin(was, after); key != test.key || ended != test.ended {
			t.Errorf("%s: %v, %t, want %v, %t", test.name, key, ended, test.key, test.ended)
		}
	}
}

func TestCauseOf(t *testing.T) {
	const (
		granted = leaseholdv1.ChangeKind_CHANGE_KIND_GRANTED
		vacated = leaseholdv1.ChangeKind_CHANGE_KIND_VACATED
		moved   = leaseholdv1.ChangeKind_CHANGE_KIND_MOVED
		expired = leaseholdv1.Cause_CAUSE_EXPIRED
		unknown = leaseholdv1.Cause_CAUSE_UNSPECIFIED
	)
	entry := func(kind leaseholdv1.ChangeKind, generation uint64, cause leaseholdv1.Cause) *leaseholdv1.HistoryEntry {
		return &leaseholdv1.HistoryEntry{Kind: kind, Lease: &leaseholdv1.Lease{Generation: generation}, Cause: cause}
	}
	for _, test := range []struct {
		name    string
		history []*leaseholdv1.HistoryEntry // newest first
		want    leaseholdv1.Cause
	}{
		{"it is held", []*leaseholdv1.HistoryEntry{entry(granted, 5, unknown)}, unknown},
		{"it ran out", []*leaseholdv1.HistoryEntry{entry(granted, 6, unknown), entry(vacated, 5, expired), entry(granted, 5, unknown)}, expired},
		{"it moved", []*leaseholdv1.HistoryEntry{entry(moved, 6, unknown), entry(granted, 5, unknown)}, leaseholdv1.Cause_CAUSE_MOVED},
		{"it moved, and then ran out", []*leaseholdv1.HistoryEntry{entry(vacated, 6, expired), entry(moved, 6, unknown), entry(moved, 5, unknown)}, leaseholdv1.Cause_CAUSE_MOVED},
		{"it ran out, and the next one moved", []*leaseholdv1.HistoryEntry{entry(moved, 7, unknown), entry(granted, 6, unknown), entry(vacated, 5, expired), entry(granted, 5, unknown)}, expired},
	} {
		if got := causeOf(test.history, 5); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
