package cli

import (
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/leasehold-dev/leasehold/admin"
)

// TestChangeTextContainsReason: the text of a change contains its reason or cause.
func TestChangeTextContainsReason(t *testing.T) {
	for _, test := range []struct {
		change admin.Change
		want   string
	}{
		{admin.Change{Kind: admin.ChangeGranted}, "granted"},
		{admin.Change{Kind: admin.ChangeGranted, Reason: "gone"}, "granted (owners gone)"},
		{admin.Change{Kind: admin.ChangeMoved, From: "a", Owner: "b", Reason: "load"}, "moved from a (load)"},
		{admin.Change{Kind: admin.ChangeMoved, From: "a", Owner: "a", Reason: "joint"}, "moved into one lease"},
		{admin.Change{Kind: admin.ChangeVacated, Cause: "expired"}, "vacated: expired"},
	} {
		if got := ChangeText(test.change); ansi.Strip(got) != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
