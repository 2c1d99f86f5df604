package managerproc_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

func TestConfigRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*managerproc.Config)
		want  string
	}{
		{"a bad election", func(c *managerproc.Config) { c.Election.Self = "" }, `election: Self, Session and Rand must be set`},
		{"no Configure", func(c *managerproc.Config) { c.Configure = nil }, `node "me": Configure and Rand must be set`},
		{"no Rand", func(c *managerproc.Config) { c.Rand = nil }, `node "me": Configure and Rand must be set`},
		{"negative retry", func(c *managerproc.Config) { c.Retry = -1 }, `node "me": retry -1ns, poll 1s, relays 4096 and idle time 1m0s must not be negative`},
		{"negative poll interval", func(c *managerproc.Config) { c.RelayPoll = -1 }, `node "me": retry 200ms, poll -1ns, relays 4096 and idle time 1m0s must not be negative`},
		{"negative relay limit", func(c *managerproc.Config) { c.MaxRelays = -1 }, `node "me": retry 200ms, poll 1s, relays -1 and idle time 1m0s must not be negative`},
		{"negative idle time", func(c *managerproc.Config) { c.RelayIdle = -1 }, `node "me": retry 200ms, poll 1s, relays 4096 and idle time -1ns must not be negative`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := processConfig()
			c.spoil(&cfg)
			_, err := managerproc.New(0, cfg)
			if err == nil {
				t.Fatal("the configuration is accepted")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" || !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("kind %v (-want +got):\n%s", leasehold.KindOf(err), diff)
			}
		})
	}
}

func TestRedirectsWhileItDoesNotLead(t *testing.T) {
	p := standby(t)
	p.step(0, p.request("x", "ann", 1), `redirect owner 61000000 to "" in 0`)
	p.elects(10*ms, byrecord.Seen{Record: storage.Record{Version: 4, Term: 3, Leader: "other", Session: leasehold.Session{2}}})
	p.step(20*ms, p.request("x", "ann", 2), `redirect owner 61000000 to "other" in 3`)
	p.step(20*ms, p.request("nowhere", "ann", 3), `redirect owner 61000000 to "other" in 3`)
	p.step(20*ms, managerproc.Request{LeaseRequest: &protocol.LeaseRequest{Namespace: "x"}}) // dropped: without a holder there is no address for a reply
	if p.machine.Manager("x") != nil || p.machine.Leads(20*ms) {
		t.Error("a standby leads")
	}
}

// A namespace is served as soon as its own table is loaded.
func TestNamespacesLoadOnTheirOwn(t *testing.T) {
	p := informed(t)
	p.step(0, p.request("y", "ann", 1), `redirect owner 61000000 to "" in 1`)
	p.loads(10*ms, "y", 1, &storage.State{Term: 1}, "serve y in 1")
	p.step(20*ms, p.request("y", "ann", 2), "y in 1: send 61000000 0")
	p.step(20*ms, p.request("x", "bob", 1), `redirect owner 62000000 to "" in 1`)
	p.step(20*ms, lookupRequest("y"), "y in 1: answer lookup 7 at 0")
	p.step(20*ms, lookupRequest("x"), `redirect lookup 7 to "" in 1`)
	if p.machine.Manager("x") != nil || p.machine.Manager("y") == nil || p.machine.Manager("nowhere") != nil {
		t.Error("want only y to be led")
	}
}

// Requests are routed by namespace, and do not affect other namespaces.
func TestRoutesByNamespace(t *testing.T) {
	p := leader(t)
	p.step(10*ms, p.request("x", "ann", 1), "x in 1: send 61000000 0")
	p.step(20*ms, p.request("y", "bob", 1), "y in 1: send 62000000 0")
	p.step(30*ms, p.request("x", "ann", 2), "x in 1: send 61000000 0", "x in 1: commit 0 to 1")
	p.manages(40*ms, "y", 1, manager.Committed{Outcome: storage.Done}) // y has no commit in flight
	p.manages(50*ms, "x", 1, manager.Committed{Outcome: storage.Done}, "x in 1: broadcast 1", "x in 1: send 61000000 1")
	if x, y := p.machine.Manager("x").Table().LSN(), p.machine.Manager("y").Table().LSN(); x != 1 || y != 0 {
		t.Errorf("x is at lsn %d and y at %d, want 1 and 0", x, y)
	}
	p.manages(60*ms, "nowhere", 1, manager.Committed{Outcome: storage.Done})
}

// An extension of the authority, and the passing of time, reach all namespaces.
func TestExtendsAuthority(t *testing.T) {
	p := leader(t)
	p.advance(1*second, "swap for term 1")
	p.elects(1100*ms, byrecord.Swapped{Outcome: storage.Done, Version: 2}, "extend until 4.000s")
	p.step(3500*ms, p.request("x", "ann", 1), "x in 1: send 61000000 0", "swap for term 1")
	p.step(4*second, p.request("y", "bob", 1)) // its authority has expired
	if p.machine.Leads(4 * second) {
		t.Error("the manager leads at 4 s")
	}
}

func TestLoadIsRepeated(t *testing.T) {
	for _, c := range []struct {
		name  string
		state *storage.State
	}{
		{"no answer", nil},
		{"a reply from before the election", &storage.State{Term: 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := informed(t)
			p.loads(0, "y", 1, &storage.State{Term: 1}, "serve y in 1")
			p.loads(100*ms, "x", 1, c.state)
			if p.wake > 300*ms {
				t.Errorf("wake time %v, but the next load is at 0.3 s", p.wake)
			}
			p.advance(299 * ms)
			p.advance(300*ms, "load x in 1")
			p.advance(900 * ms) // only once
			p.loads(950*ms, "x", 1, &storage.State{Term: 1}, "serve x in 1")
			if p.machine.Manager("x") == nil {
				t.Error("x is not led")
			}
		})
	}
}

// A duplicate reply does not restart a namespace.
func TestLoadedTwice(t *testing.T) {
	p := leader(t)
	led := p.machine.Manager("x")
	p.loads(10*ms, "x", 1, &storage.State{Term: 1})
	p.loads(10*ms, "nowhere", 1, &storage.State{Term: 1})
	if p.machine.Manager("x") != led {
		t.Error("x was restarted")
	}
}

func TestLoadFindsALaterLeader(t *testing.T) {
	p := informed(t)
	p.loads(10*ms, "x", 1, &storage.State{Term: 4}, "step down", "swap for term 5")
	p.loads(20*ms, "y", 1, &storage.State{Term: 1}) // too late
	if p.machine.Manager("x") != nil || p.machine.Manager("y") != nil {
		t.Error("the manager still leads")
	}
}

// Replies to requests of an earlier term are dropped.
func TestLateAnswersAreDropped(t *testing.T) {
	p := leader(t)
	p.step(10*ms, p.request("x", "ann", 1), "x in 1: send 61000000 0")
	p.step(20*ms, p.request("x", "ann", 2), "x in 1: send 61000000 0", "x in 1: commit 0 to 1")
	p.elects(30*ms, byrecord.Deposed{By: 2}, "step down", "swap for term 3")
	p.manages(40*ms, "x", 1, manager.Committed{Outcome: storage.Done}) // no leader
	p.elects(50*ms, byrecord.Swapped{Outcome: storage.Done, Version: 2}, "read catalog in 3", "lead in 3")
	p.step(50*ms, managerproc.Catalogued{Term: 3, Catalog: &storage.Catalog{Version: 1, Term: 3, Namespaces: []storage.Namespace{entry("x")}}}, "load x in 3")
	p.loads(60*ms, "x", 1, &storage.State{Term: 1}) // of the earlier term
	p.loads(60*ms, "x", 1, &storage.State{Term: 3}) // of the earlier term, read late
	if p.machine.Manager("x") != nil {
		t.Fatal("the table of the earlier term is used")
	}
	p.loads(70*ms, "x", 3, &storage.State{Term: 3}, "serve x in 3")
	p.step(80*ms, p.request("x", "ann", 3), "x in 3: send 61000000 0")
	p.step(90*ms, p.request("x", "ann", 4), "x in 3: send 61000000 0", "x in 3: commit 0 to 1")
	p.manages(100*ms, "x", 1, manager.Committed{Outcome: storage.Done})
	p.manages(100*ms, "x", 1, manager.LogEnd{Term: 1, LSN: 1})
	if lsn := p.machine.Manager("x").Table().LSN(); lsn != 0 {
		t.Fatalf("the commit of the earlier term is used: lsn %d", lsn)
	}
	p.manages(110*ms, "x", 3, manager.Committed{Outcome: storage.Done}, "x in 3: broadcast 1", "x in 3: send 61000000 1")
}

func TestStepsDownForAll(t *testing.T) {
	p := leader(t)
	p.elects(500*ms, byrecord.Seen{Record: storage.Record{Version: 2, Term: 2, Leader: "other", Session: leasehold.Session{2}}}, "step down", "read")
	p.step(600*ms, p.request("x", "ann", 1), `redirect owner 61000000 to "other" in 2`)
	p.step(600*ms, lookupRequest("y"), `follow y at "other": #1 from 0`)
	p.advance(1*second, "read")
}

// A request with a higher term makes the leader renew its record at once. The conflict in the store
// deposes it, in every namespace.
func TestOutrankedByAnOwner(t *testing.T) {
	p := leader(t)
	r := p.request("x", "ann", 1)
	r.Term, r.Heard = 6, 1
	p.step(500*ms, r, "x in 1: outranked by 6", "swap for term 1")
	if p.machine.Manager("y") == nil || !p.machine.Leads(500*ms) {
		t.Error("a request of an owner ends the leadership")
	}
	p.elects(600*ms, byrecord.Swapped{Outcome: storage.Conflict}, "read")
	p.elects(700*ms, byrecord.Seen{Record: storage.Record{Version: 2, Term: 6, Leader: "other", Session: leasehold.Session{2}}}, "step down")
	if p.machine.Manager("y") != nil || p.machine.Leads(700*ms) {
		t.Error("y is still led")
	}
	p.step(800*ms, p.request("x", "ann", 2), `redirect owner 61000000 to "other" in 6`)
}

// A commit that the store rejects because of a later leader deposes too.
func TestDeposedByTheStore(t *testing.T) {
	p := leader(t)
	p.step(10*ms, p.request("x", "ann", 1), "x in 1: send 61000000 0")
	p.step(20*ms, p.request("x", "ann", 2), "x in 1: send 61000000 0", "x in 1: commit 0 to 1")
	p.manages(30*ms, "x", 1, manager.Committed{Outcome: storage.Conflict}, "x in 1: read end")
	p.manages(40*ms, "x", 1, manager.LogEnd{Term: 2, LSN: 3}, "x in 1: deposed by 2", "step down", "swap for term 3")
}

// A namespace's wake time is honoured.
func TestWakesNamespaces(t *testing.T) {
	p := leader(t)
	p.step(10*ms, p.request("x", "ann", 1), "x in 1: send 61000000 0")
	p.step(20*ms, p.request("x", "ann", 2), "x in 1: send 61000000 0", "x in 1: commit 0 to 1")
	p.manages(30*ms, "x", 1, manager.Committed{Outcome: storage.Unknown}, "x in 1: read end")
	p.manages(40*ms, "x", 1, manager.LogEnd{Err: true})
	if p.wake > 240*ms {
		t.Errorf("wake time %v, but the next read is within 0.2 s", p.wake)
	}
	p.advance(p.wake, "x in 1: read end")
}
