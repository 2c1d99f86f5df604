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

// An application that hangs for ever costs a bounded amount of memory, and is
// told of one lease on each part of the key space for all that came and went.
func TestWhatPassesIsBounded(t *testing.T) {
	c := newCallbacks(&Config{}, nil)
	stays := leasehold.Lease{Range: leasehold.Range{Start: 100, Limit: 200}, Generation: 1}
	for g := range leasehold.Generation(1000) {
		before, after := lease(0, 2*g+2), lease(500+10*leasehold.Key(g), 2*g+3)
		c.change([]leasehold.Lease{before, stays, after}, nil, nil, false)
		c.change([]leasehold.Lease{stays}, nil, []revocation{{[]leasehold.Lease{before, after}, leasehold.CauseReleased}}, false)
		if len(c.passed) > manyPassed+4 || len(c.causes) > 0 {
			t.Fatalf("%d leases and %d reasons are kept", len(c.passed), len(c.causes))
		}
	}
	c.passed.merge(c.held, nil)
	want := passing{
		{lease(0, 2000), leasehold.CauseReleased},
		{leasehold.Lease{Range: leasehold.Range{Start: 500, Limit: 10500}, Generation: 2001}, leasehold.CauseReleased},
	}
	if diff := gocmp.Diff(want, c.passed, gocmp.AllowUnexported(passed{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is merged does not reach into what is held: here generation 5 ended on
// both halves, and 8 on the lower one, while 7 is held on the upper one.
func TestMergingSparesWhatIsHeld(t *testing.T) {
	lower, upper := leasehold.Range{Limit: 50}, leasehold.Range{Start: 50, Limit: 100}
	p := passing{
		{leasehold.Lease{Range: leasehold.Range{Limit: 100}, Generation: 5}, leasehold.CauseReleased},
		{leasehold.Lease{Range: lower, Generation: 8}, leasehold.CauseExpired},
	}
	p.merge([]leasehold.Lease{{Range: upper, Generation: 7}}, nil)
	want := passing{
		{leasehold.Lease{Range: lower, Generation: 8}, leasehold.CauseExpired},
		{leasehold.Lease{Range: upper, Generation: 5}, leasehold.CauseReleased},
	}
	if diff := gocmp.Diff(want, p, gocmp.AllowUnexported(passed{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is merged does not reach into what is coming either, nor does it keep quiet
// about what has ended there. That a range is coming which is held, because it moves
// from here to here, changes nothing.
func TestMergingSparesWhatIsComing(t *testing.T) {
	ended := func(start leasehold.Key, g leasehold.Generation) passed {
		return passed{lease(start, g), leasehold.CauseReleased}
	}
	p := passing{ended(0, 8), ended(40, 9), ended(110, 2), ended(130, 3), ended(180, 5), ended(200, 7), ended(300, 6)}
	held := []leasehold.Lease{{Range: leasehold.Range{Start: 160, Limit: 200}, Generation: 6}}
	p.merge(held, []leasehold.Range{{Start: 150, Limit: 210}, {Start: 100, Limit: 150}})
	merged := func(start, limit leasehold.Key, g leasehold.Generation) passed {
		return passed{leasehold.Lease{Range: leasehold.Range{Start: start, Limit: limit}, Generation: g}, leasehold.CauseReleased}
	}
	want := passing{merged(0, 50, 9), merged(110, 140, 3), merged(180, 190, 5), merged(200, 210, 7), merged(300, 310, 6)}
	if diff := gocmp.Diff(want, p, gocmp.AllowUnexported(passed{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// While the application puts state in its place, it is not told that it has none
// there: however many leases come and go around it meanwhile, with newer generations.
func TestWhatIsInstalledIsNotRevoked(t *testing.T) {
	c := clock.New()
	o, err := newOwner(Config{Namespace: testNamespace, Managers: []string{leaderAddr}, Addr: "10.0.0.1:8080", Credentials: insecure.NewCredentials()}, c, clock.NewDetector(c))
	if err != nil {
		t.Fatal(err)
	}
	defer o.link.Close()
	installing := leasehold.Lease{Range: leasehold.Range{Start: 1000, Limit: 2000}, Generation: 3}
	for i := range leasehold.Key(2 * manyPassed) {
		short := lease(i%2*5000, leasehold.Generation(4+i)) // on one side, and on the other
		view := &machine.View{Until: mono.Never, Coming: []leasehold.Range{installing.Range}}
		o.act(0, []machine.Action{
			machine.Publish{View: view},
			machine.RevokedLeases{Leases: []leasehold.Lease{short}, Cause: leasehold.CauseReleased},
		})
	}
	told := 0
	for _, r := range o.callbacks.difference().revoked {
		for _, l := range r.leases {
			told++
			if l.Range.Overlaps(installing.Range) {
				t.Errorf("%v is told to have ended, and %v is being put in its place", l, installing)
			}
		}
	}
	if told == 0 || told > manyPassed {
		t.Errorf("told of %d leases: the test has lost its sense", told)
	}
}
