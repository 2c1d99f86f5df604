package owner

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

// A hanging application costs bounded memory, and OnRevoke
// receives one merged lease on each part of the key space.
func TestUnreportedLeasesAreBounded(t *testing.T) {
	c := newCallbacks(&Config{}, nil)
	stays := leasehold.Lease{Range: leasehold.Range{Start: 100, Limit: 200}, Generation: 1}
	for g := range leasehold.Generation(1000) {
		before, after := lease(0, 2*g+2), lease(500+10*leasehold.Key(g), 2*g+3)
		c.change([]leasehold.Lease{before, stays, after}, nil, nil, nil)
		c.change([]leasehold.Lease{stays}, nil, nil, []revocation{{[]leasehold.Lease{before, after}, leasehold.CauseReleased}})
		if len(c.unreported) > minMerged+4 || len(c.causes) > 0 {
			t.Fatalf("%d leases and %d causes are kept", len(c.unreported), len(c.causes))
		}
	}
	c.unreported.merge(c.held, nil)
	want := unreported{
		{lease(0, 2000), leasehold.CauseReleased},
		{leasehold.Lease{Range: leasehold.Range{Start: 500, Limit: 10500}, Generation: 2001}, leasehold.CauseReleased},
	}
	if diff := gocmp.Diff(want, c.unreported, gocmp.AllowUnexported(endedLease{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A merged lease does not cover a held lease: here generation 5 has ended on
// both halves, and 8 on the lower one, while 7 is held on the upper half.
func TestMergingExcludesHeldLeases(t *testing.T) {
	lower, upper := leasehold.Range{Limit: 50}, leasehold.Range{Start: 50, Limit: 100}
	p := unreported{
		{leasehold.Lease{Range: leasehold.Range{Limit: 100}, Generation: 5}, leasehold.CauseReleased},
		{leasehold.Lease{Range: lower, Generation: 8}, leasehold.CauseExpired},
	}
	p.merge([]leasehold.Lease{{Range: upper, Generation: 7}}, nil)
	want := unreported{
		{leasehold.Lease{Range: lower, Generation: 8}, leasehold.CauseExpired},
		{leasehold.Lease{Range: upper, Generation: 5}, leasehold.CauseReleased},
	}
	if diff := gocmp.Diff(want, p, gocmp.AllowUnexported(endedLease{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A merged lease does not cover a coming range, and the ends within that
// range are reported. A coming range may also be held, because it moves
// to the same owner.
func TestMergingExcludesComingRanges(t *testing.T) {
	ended := func(start leasehold.Key, g leasehold.Generation) endedLease {
		return endedLease{lease(start, g), leasehold.CauseReleased}
	}
	p := unreported{ended(0, 8), ended(40, 9), ended(110, 2), ended(130, 3), ended(180, 5), ended(200, 7), ended(300, 6)}
	held := []leasehold.Lease{{Range: leasehold.Range{Start: 160, Limit: 200}, Generation: 6}}
	p.merge(held, []leasehold.Range{{Start: 150, Limit: 210}, {Start: 100, Limit: 150}})
	merged := func(start, limit leasehold.Key, g leasehold.Generation) endedLease {
		return endedLease{leasehold.Lease{Range: leasehold.Range{Start: start, Limit: limit}, Generation: g}, leasehold.CauseReleased}
	}
	want := unreported{merged(0, 50, 9), merged(110, 140, 3), merged(180, 190, 5), merged(200, 210, 7), merged(300, 310, 6)}
	if diff := gocmp.Diff(want, p, gocmp.AllowUnexported(endedLease{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// During install OnRevoke does not receive the range, even if many leases with newer
// generations are granted and end around it.
func TestInstallingRangeIsNotRevoked(t *testing.T) {
	c := clock.New()
	o, err := newOwner(Config{Namespace: testNamespace, Managers: []string{leaderAddr}, Addr: "10.0.0.1:8080", Credentials: insecure.NewCredentials()}, c, clock.NewDetector(c))
	if err != nil {
		t.Fatal(err)
	}
	defer o.link.Close()
	installing := leasehold.Lease{Range: leasehold.Range{Start: 1000, Limit: 2000}, Generation: 3}
	for i := range leasehold.Key(2 * minMerged) {
		short := lease(i%2*5000, leasehold.Generation(4+i)) // on one side, and on the other
		view := &machine.View{Until: mono.Never, Coming: []leasehold.Range{installing.Range}}
		o.act(0, []machine.Action{
			machine.Publish{View: view},
			machine.RevokedLeases{Leases: []leasehold.Lease{short}, Cause: leasehold.CauseReleased},
		})
	}
	reported := 0
	for _, r := range o.callbacks.difference().revoked {
		for _, l := range r.leases {
			reported++
			if l.Range.Overlaps(installing.Range) {
				t.Errorf("%v is reported as ended while %v is being installed", l, installing)
			}
		}
	}
	if reported == 0 || reported > minMerged {
		t.Errorf("%d leases are reported: the test does not merge", reported)
	}
}
