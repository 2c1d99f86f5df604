package main

import (
	"testing"

	"github.com/charmbracelet/x/ansi"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Whatever has happened is told with why.
func TestChangesSayWhy(t *testing.T) {
	for _, test := range []struct {
		entry *leaseholdv1.HistoryEntry
		want  string
	}{
		{&leaseholdv1.HistoryEntry{Kind: leaseholdv1.ChangeKind_CHANGE_KIND_GRANTED}, "granted"},
		{&leaseholdv1.HistoryEntry{Kind: leaseholdv1.ChangeKind_CHANGE_KIND_GRANTED, Reason: leaseholdv1.Reason_REASON_GONE}, "granted (owners gone)"},
		{&leaseholdv1.HistoryEntry{Kind: leaseholdv1.ChangeKind_CHANGE_KIND_MOVED, From: &leaseholdv1.Holder{Owner: "a"}, Holder: &leaseholdv1.Holder{Owner: "b"}, Reason: leaseholdv1.Reason_REASON_LOAD}, "moved from a (load)"},
		{&leaseholdv1.HistoryEntry{Kind: leaseholdv1.ChangeKind_CHANGE_KIND_MOVED, From: &leaseholdv1.Holder{Owner: "a"}, Holder: &leaseholdv1.Holder{Owner: "a"}, Reason: leaseholdv1.Reason_REASON_JOINT}, "moved into one lease"},
		{&leaseholdv1.HistoryEntry{Kind: leaseholdv1.ChangeKind_CHANGE_KIND_VACATED, Cause: leaseholdv1.Cause_CAUSE_EXPIRED}, "vacated: expired"},
	} {
		if got := changeJSON(test.entry).what(); ansi.Strip(got) != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
