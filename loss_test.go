package leasehold_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// Causes are part of the wire protocol: peers of other versions rely on their numbers.
func TestCausesAreNeverRenumbered(t *testing.T) {
	for number, want := range []struct {
		cause leasehold.Cause
		name  string
	}{
		{leasehold.CauseUnknown, "unknown"},
		{leasehold.CauseExpired, "expired"},
		{leasehold.CauseReleased, "released"},
		{leasehold.CauseLeft, "left"},
		{leasehold.CauseRefused, "refused"},
		{leasehold.CauseRestarted, "restarted"},
		{leasehold.CauseContact, "contact lost"},
		{leasehold.CauseMoved, "moved"},
		{leasehold.CauseDied, "died"},
	} {
		if int(want.cause) != number || want.cause.String() != want.name {
			t.Errorf("cause %d is %d, %q; want %q", number, want.cause, want.cause, want.name)
		}
	}
}

func TestCauseOfNewerPeer(t *testing.T) {
	if got, want := leasehold.Cause(200).String(), "cause(200)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := leasehold.Cause(9).String(), "cause(9)"; got != want {
		t.Errorf("got %q, want %q: a new cause needs a line in this test", got, want)
	}
}

func TestLossString(t *testing.T) {
	for _, test := range []struct {
		loss leasehold.Loss
		want string
	}{
		{
			leasehold.Loss{
				Range: leasehold.Range{Start: 1, Limit: 2}, Owner: "web-1",
				Generation: 41, Cause: leasehold.CauseExpired, LSN: 9,
			},
			`0000000000000001-0000000000000002 lost by "web-1": expired (generation 41, lsn 9)`,
		},
		{
			leasehold.Loss{Range: leasehold.All, Cause: leasehold.CauseContact, LSN: 9},
			`0000000000000000-end lost: contact lost (lsn 9)`,
		},
		{
			leasehold.Loss{Owner: "a\nb", Cause: 99},
			`0000000000000000-end lost by "a\nb": cause(99) (generation 0, lsn 0)`,
		},
	} {
		if got := test.loss.String(); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}
