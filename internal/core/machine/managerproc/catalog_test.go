package managerproc_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// joined lets ann join x and acknowledge a reply; the first grant is being committed.
func joined(t *testing.T) *process {
	t.Helper()
	p := leader(t)
	p.step(10*ms, p.request("x", "ann", 1), "x in 1: send 61000000 0")
	p.step(20*ms, p.request("x", "ann", 2), "x in 1: send 61000000 0", "x in 1: commit 0 to 1")
	return p
}

// granted goes on until ann has been granted all of x.
func granted(t *testing.T) *process {
	t.Helper()
	p := joined(t)
	p.manages(30*ms, "x", 1, manager.Committed{Outcome: storage.Done}, "x in 1: broadcast 1", "x in 1: send 61000000 1")
	return p
}

func TestTakeoverReadsCatalogThenTables(t *testing.T) {
	p := elected(t)
	if p.machine.Catalog() != nil {
		t.Error("there is a catalog before it was read")
	}
	p.step(0, p.request("x", "ann", 1), `redirect owner 61000000 to "" in 1`) // the namespace may exist
	p.step(0, lookupRequest("x"), `redirect lookup 7 to "" in 1`)
	c := catalog(5, entry("x"), entry("y"))
	p.reads(10*ms, c, "load x in 1", "load y in 1")
	if p.machine.Catalog() != c {
		t.Error("the catalog is not in use")
	}
}

func TestCatalogIsReadAgain(t *testing.T) {
	for _, c := range []struct {
		name    string
		catalog *storage.Catalog
	}{
		{"no answer", nil},
		{"a reply from before the election", &storage.Catalog{Version: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := elected(t)
			p.reads(100*ms, c.catalog)
			if p.wake > 300*ms {
				t.Errorf("wake time %v, but the next read is at 0.3 s", p.wake)
			}
			p.advance(299 * ms)
			p.advance(300*ms, "read catalog in 1")
			p.advance(900 * ms) // only once
			p.reads(950*ms, catalog(1, entry("x")), "load x in 1")
		})
	}
}

func TestCatalogOfALaterLeader(t *testing.T) {
	p := elected(t)
	p.reads(10*ms, &storage.Catalog{Version: 9, Term: 4, Namespaces: []storage.Namespace{entry("x")}}, "step down", "swap for term 5")
	if p.machine.Catalog() != nil || p.machine.Term() != 0 {
		t.Error("the catalog of a later leader is in use")
	}
	p.advance(400 * ms) // no more reads
}

// A reply with the catalog to a request of another term is dropped.
func TestCatalogOfAnotherTermIsDropped(t *testing.T) {
	p := leader(t)
	for _, term := range []leasehold.Term{0, 2} {
		p.step(10*ms, managerproc.Catalogued{Term: term, Catalog: catalog(9)})
		p.step(10*ms, managerproc.Catalogued{Term: term})
	}
	if p.machine.Manager("x") == nil {
		t.Error("x is gone")
	}
	p.advance(500 * ms)
}

// An older version of the catalog is ignored.
func TestStaleCatalogIsIgnored(t *testing.T) {
	p := elected(t)
	p.reads(0, catalog(3, entry("x"), entry("y")), "load x in 1", "load y in 1")
	for _, version := range []storage.Version{3, 2} {
		p.reads(10*ms, catalog(version, entry("z")))
	}
	if v := p.machine.Catalog().Version; v != 3 {
		t.Errorf("the catalog in use has version %d, want 3", v)
	}
}

func TestNamespaceIsAdded(t *testing.T) {
	p := leader(t)
	p.step(10*ms, p.request("w", "ann", 1), "refuse owner 61000000: not found")
	p.reads(20*ms, catalog(2, entry("w"), entry("x"), entry("y")), "load w in 1")
	p.step(30*ms, p.request("w", "ann", 2), `redirect owner 61000000 to "" in 1`)
	p.loads(40*ms, "w", 1, &storage.State{Term: 1}, "serve w in 1")
	p.step(50*ms, p.request("w", "ann", 3), "w in 1: send 61000000 0")
}

// A new configuration is in the following replies; other namespaces are not affected.
func TestNamespaceIsReconfigured(t *testing.T) {
	p := granted(t)
	led := p.machine.Manager("x")
	p.reads(40*ms, catalog(2, shorter("x"), entry("y")))
	p.step(50*ms, p.request("x", "ann", 3), "x in 1: send 61000000 1")
	p.step(50*ms, p.request("y", "bob", 1), "y in 1: send 62000000 0")
	ann, bob := p.replies[holder("ann").Session].Timing, p.replies[holder("bob").Session].Timing
	if ann.Lease != 2*time.Second || bob.Lease != 10*time.Second {
		t.Errorf("ann gets leases of %v and bob of %v, want 2 s and 10 s", ann.Lease, bob.Lease)
	}
	if p.machine.Manager("x") != led {
		t.Error("x was restarted")
	}
}

// A namespace that is reconfigured before it is loaded starts with the new configuration.
func TestReconfiguredBeforeItIsLoaded(t *testing.T) {
	p := informed(t)
	p.reads(10*ms, catalog(2, shorter("x"), entry("y")))
	p.loads(20*ms, "x", 1, &storage.State{Term: 1}, "serve x in 1")
	p.step(30*ms, p.request("x", "ann", 1), "x in 1: send 61000000 0")
	if got := p.replies[holder("ann").Session].Timing.Lease; got != 2*time.Second {
		t.Errorf("leases of %v, want 2 s", got)
	}
}

// A deleted namespace is not served any more. Its entry is removed when all leases have ended and
// this is committed.
func TestNamespaceIsDeleted(t *testing.T) {
	p := granted(t)
	p.version = 1
	p.reads(40*ms, catalog(2, deleted("x"), entry("y")))
	p.step(50*ms, p.request("x", "ann", 3), "refuse owner 61000000: not found")
	p.step(50*ms, lookupRequest("x"), "refuse lookup 7: not found")
	p.step(50*ms, p.request("y", "bob", 1), "y in 1: send 62000000 0")
	if got := p.live(100*ms, 12*second); len(got) > 0 {
		t.Fatalf("removed at %v, and ann may hold a lease until 12 s", got)
	}
	got := p.live(12100*ms, 12200*ms)
	if len(got) != 1 {
		t.Fatalf("ann has no lease since 12 s, and the entry is removed %d times", len(got))
	}
	if got := p.live(12300*ms, 15*second); len(got) == 0 {
		t.Error("the write failed, and is not retried")
	}
	p.reads(15*second, catalog(3, entry("y")))
	p.step(15*second, p.request("x", "ann", 4), "refuse owner 61000000: not found")
	if p.machine.Manager("x") != nil {
		t.Error("x is led")
	}
}

// A deleted namespace without leases is removed at once, also by a new leader.
func TestEmptyNamespaceIsDeleted(t *testing.T) {
	p := leader(t)
	p.reads(10*ms, catalog(2, deleted("x"), entry("y")), "remove x in 1")

	p = elected(t)
	p.reads(0, catalog(1, deleted("x")), "load x in 1")
	p.step(0, p.request("x", "ann", 1), "refuse owner 61000000: not found")
	p.loads(10*ms, "x", 1, &storage.State{Term: 1}, "remove x in 1")
}

// A namespace that is created again before it was removed continues.
func TestDeletedNamespaceIsCreatedAgain(t *testing.T) {
	p := granted(t)
	led := p.machine.Manager("x")
	p.reads(40*ms, catalog(2, deleted("x"), entry("y")))
	p.reads(50*ms, catalog(3, entry("x"), entry("y")))
	p.step(60*ms, p.request("x", "ann", 3), "x in 1: send 61000000 1")
	if p.machine.Manager("x") != led {
		t.Error("x was restarted")
	}
}

// A namespace that comes back in the same term continues with the sequence numbers of its first
// machine, which its owners have seen.
func TestNamespaceComesBackInItsTerm(t *testing.T) {
	p := granted(t)
	last := p.replies[holder("ann").Session].Seq
	state := &storage.State{Term: 1, Table: grown()}
	for range 2 { // the second time it is deleted before it was loaded
		p.reads(40*ms, catalog(p.machine.Catalog().Version+1, entry("y")))
		p.reads(50*ms, catalog(p.machine.Catalog().Version+1, entry("x"), entry("y")), "load x in 1")
	}
	p.loads(60*ms, "x", 1, state, "serve x in 1")
	p.step(70*ms, p.request("x", "ann", 3), "x in 1: send 61000000 1")
	if got := p.replies[holder("ann").Session].Seq; got <= last {
		t.Errorf("message %d after message %d", got, last)
	}
}

// A second machine must not start while a batch of the first one is in flight: the store does not
// distinguish the two.
func TestNamespaceComesBackWhileACommitIsUnderWay(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil storage.Namespace // ends the first machine; an empty name deletes the namespace
	}{
		{"deleted", storage.Namespace{}},
		{"parked", func() storage.Namespace { e := entry("x"); e.Policy = "odd"; return e }()},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := joined(t)
			if c.spoil.Name == "" {
				p.reads(30*ms, catalog(2, entry("y")))
			} else {
				p.reads(30*ms, catalog(2, c.spoil, entry("y")), `park x: configure "x": there is no policy "odd"`)
			}
			p.reads(40*ms, catalog(3, entry("x"), entry("y")))
			p.loads(45*ms, "x", 1, &storage.State{Term: 1}) // requested before, and too old
			p.step(50*ms, p.request("x", "ann", 3), `redirect owner 61000000 to "" in 1`)
			p.manages(60*ms, "x", 1, manager.Committed{Outcome: storage.Unknown}, "x in 1: read end")
			p.manages(70*ms, "x", 1, manager.LogEnd{Err: true})
			p.advance(270*ms, "x in 1: read end")
			p.manages(280*ms, "x", 1, manager.LogEnd{Term: 1, LSN: 0}, "x in 1: commit 0 to 1")
			p.manages(290*ms, "x", 1, manager.Committed{Outcome: storage.Done}, "load x in 1")
			p.loads(300*ms, "x", 1, &storage.State{Term: 1}) // from before the batch
			p.advance(500*ms, "load x in 1")
			p.loads(510*ms, "x", 1, &storage.State{Term: 1, Table: grown()}, "serve x in 1")
			p.step(520*ms, p.request("x", "ann", 4), "x in 1: send 61000000 1")
		})
	}
}

// A retired machine of a deleted namespace ends silently. If it finds a later leader in the store,
// it deposes this leader for all namespaces.
func TestRetiredNamespace(t *testing.T) {
	p := joined(t)
	p.reads(30*ms, catalog(2, entry("y")))
	p.manages(40*ms, "x", 1, manager.Committed{Outcome: storage.Done})
	p.manages(50*ms, "x", 1, manager.Committed{Outcome: storage.Done}) // no actions

	p = joined(t)
	p.reads(30*ms, catalog(2, entry("y")))
	p.manages(40*ms, "x", 1, manager.Committed{Outcome: storage.Conflict}, "x in 1: read end")
	p.manages(50*ms, "x", 1, manager.LogEnd{Term: 2, LSN: 3}, "step down", "swap for term 3")
	if p.machine.Manager("y") != nil {
		t.Error("y is still led")
	}
}

func TestBadEntryIsParked(t *testing.T) {
	odd, hasty := entry("x"), entry("x")
	odd.Policy = "odd"
	hasty.Renew = time.Minute
	for _, c := range []struct {
		name string
		bad  storage.Namespace
		why  string
	}{
		{"unknown policy", odd, `park x: configure "x": there is no policy "odd"`},
		{"invalid timing", hasty, `park x: timing "1m0s": renewals come at least twice in a lease of 10s, and not more often than every 1ms`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := elected(t)
			p.reads(0, catalog(1, c.bad, entry("y")), c.why, "load y in 1")
			p.loads(0, "y", 1, &storage.State{Term: 1}, "serve y in 1")
			p.step(10*ms, p.request("x", "ann", 1), "refuse owner 61000000: invalid")
			p.step(10*ms, lookupRequest("x"), "refuse lookup 7: invalid")
			p.step(10*ms, p.request("y", "bob", 1), "y in 1: send 62000000 0")
			p.loads(20*ms, "x", 1, &storage.State{Term: 1})
			p.advance(500 * ms)
			if p.machine.Problem("x") == nil || p.machine.Problem("y") != nil || p.machine.Manager("x") != nil {
				t.Errorf("problems %v and %v, want one with x alone", p.machine.Problem("x"), p.machine.Problem("y"))
			}
			p.reads(600*ms, catalog(2, entry("x"), entry("y")), "load x in 1")
			p.loads(610*ms, "x", 1, &storage.State{Term: 1}, "serve x in 1")
			p.step(620*ms, p.request("x", "ann", 2), "x in 1: send 61000000 0")
			if p.machine.Problem("x") != nil {
				t.Errorf("x is led, and its problem is %v", p.machine.Problem("x"))
			}
		})
	}
}

// A running namespace is parked if its new configuration is invalid. It must not continue with the
// old one, which a successor would not have.
func TestInvalidReconfigurationIsParked(t *testing.T) {
	p := granted(t)
	bad := entry("x")
	bad.Renew = time.Minute
	p.reads(40*ms, catalog(2, bad, entry("y")), `park x: timing "1m0s": renewals come at least twice in a lease of 10s, and not more often than every 1ms`)
	p.step(50*ms, p.request("x", "ann", 3), "refuse owner 61000000: invalid")
	if p.machine.Manager("x") != nil || p.machine.Manager("y") == nil {
		t.Error("want only y to be led")
	}
}

// A log that cannot be replayed needs an operator: its namespace is parked, and the others are not
// affected.
func TestBrokenLogIsParked(t *testing.T) {
	p := informed(t)
	broken := &storage.State{Term: 1, Changes: []table.Change{{LSN: 5}}}
	_, why := broken.Replay()
	p.loads(0, "x", 1, broken, "park x: "+why.Error())
	p.loads(0, "y", 1, &storage.State{Term: 1}, "serve y in 1")
	p.step(10*ms, p.request("x", "ann", 1), "refuse owner 61000000: internal error")
	p.step(10*ms, p.request("y", "bob", 1), "y in 1: send 62000000 0")
	if diff := cmp.Diff(why.Error(), p.machine.Problem("x").Error()); diff != "" {
		t.Errorf("problem (-want +got):\n%s", diff)
	}
	p.advance(900 * ms) // no retry
	p.elects(950*ms, byrecord.Slept{}, "step down", "swap for term 2")
	if p.machine.Problem("x") != nil {
		t.Error("a standby reports a problem")
	}
}

// Only a leader with authority rejects a nonexistent namespace.
func TestRefusesOnlyWithAuthority(t *testing.T) {
	p := elected(t)
	p.step(10*ms, p.request("nowhere", "ann", 1), `redirect owner 61000000 to "" in 1`) // no catalog yet
	p.reads(20*ms, catalog(1, entry("x")), "load x in 1")
	p.step(30*ms, p.request("nowhere", "ann", 2), "refuse owner 61000000: not found")
	p.step(30*ms, lookupRequest("nowhere"), "refuse lookup 7: not found")
	p.step(3*second, p.request("nowhere", "ann", 3), `redirect owner 61000000 to "" in 1`, "swap for term 1")
	p.step(3*second, lookupRequest("nowhere"), `redirect lookup 7 to "" in 1`)
}

// A write with a lost reply may take effect after the leader has read the catalog again.
func TestLateWriteOfTheCatalog(t *testing.T) {
	p := elected(t)
	p.reads(0, catalog(3, entry("x")), "load x in 1")
	p.step(10*ms, managerproc.Catalogued{Term: 1})
	p.advance(210*ms, "read catalog in 1")
	p.reads(220*ms, catalog(3, entry("x")))
	p.advance(11000*ms, "swap for term 1", "read catalog in 1")
	p.reads(11000*ms, catalog(4, entry("x"), entry("y")), "load y in 1")
}
