package node_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/machine/election"
	"github.com/leasehold-dev/leasehold/internal/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/machine/node"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// Every process here leads for 3 s at a time, renews every second, and leads
// the namespaces x and y.
const (
	second = mono.Instant(time.Second)
	ms     = mono.Instant(time.Millisecond)
)

func managerConfig(ns leasehold.Namespace) manager.Config {
	return manager.Config{Namespace: ns, Self: "me", Policy: partition.Even{}, Rand: rand.New(rand.NewPCG(3, 4))}
}

func processConfig() node.Config {
	return node.Config{
		Election:   election.Config{Self: "me", Session: leasehold.Session{1}, TTL: 3 * time.Second, Rand: rand.New(rand.NewPCG(1, 2))},
		Namespaces: []manager.Config{managerConfig("y"), managerConfig("x")},
	}
}

// A process is a manager process that the test plays by hand.
type process struct {
	t       *testing.T
	machine *node.Machine
	wake    mono.Instant
	replies map[leasehold.Session]*protocol.LeaseReply // the newest to each owner
}

// standby returns a process that has asked who leads.
func standby(t *testing.T) *process {
	t.Helper()
	m, err := node.New(0, processConfig())
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, machine: m, replies: make(map[leasehold.Session]*protocol.LeaseReply)}
	p.advance(0, "read")
	return p
}

// elected returns a process that leads in term 1 until 3 s, and has loaded
// nothing yet.
func elected(t *testing.T) *process {
	t.Helper()
	p := standby(t)
	p.elects(0, election.Seen{}, "swap for term 1")
	p.elects(0, election.Swapped{Outcome: storage.Done, Version: 1}, "load x in 1", "load y in 1", "lead in 1")
	return p
}

// leader returns one that has loaded both namespaces, which are empty.
func leader(t *testing.T) *process {
	t.Helper()
	p := elected(t)
	p.loads(0, "x", 1, &storage.State{Term: 1})
	p.loads(0, "y", 1, &storage.State{Term: 1})
	return p
}

func (p *process) step(now mono.Instant, e node.Event, want ...string) {
	p.t.Helper()
	actions, wake := p.machine.Step(now, e)
	p.compare(now, fmt.Sprintf("%T", e), actions, wake, want)
}

func (p *process) advance(now mono.Instant, want ...string) {
	p.t.Helper()
	actions, wake := p.machine.Advance(now)
	p.compare(now, "time", actions, wake, want)
}

func (p *process) elects(now mono.Instant, e election.Event, want ...string) {
	p.t.Helper()
	p.step(now, node.Election{Event: e}, want...)
}

func (p *process) loads(now mono.Instant, ns leasehold.Namespace, term leasehold.Term, s *storage.State, want ...string) {
	p.t.Helper()
	p.step(now, node.Loaded{Namespace: ns, Term: term, State: s}, want...)
}

func (p *process) manages(now mono.Instant, ns leasehold.Namespace, term leasehold.Term, e manager.Event, want ...string) {
	p.t.Helper()
	p.step(now, node.Manager{Namespace: ns, Term: term, Event: e}, want...)
}

// compare leaves notes out: they are the business of the machines within.
func (p *process) compare(now mono.Instant, what string, actions []node.Action, wake mono.Instant, want []string) {
	p.t.Helper()
	p.wake = wake
	var got []string
	for _, a := range actions {
		if text := p.describe(a); text != "" {
			got = append(got, text)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Fatalf("at %v, %s (-want +got):\n%s", now, what, diff)
	}
}

// describe writes an action as the tests do.
func (p *process) describe(a node.Action) string {
	switch a := a.(type) {
	case node.Elect:
		return describeElection(a.Action)
	case node.Manage:
		if s, ok := a.Action.(manager.Send); ok {
			p.replies[s.Reply.Session] = s.Reply
		}
		return describeManager(a)
	case node.Load:
		return fmt.Sprintf("load %s in %d", a.Namespace, a.Term)
	case node.RedirectOwner:
		return fmt.Sprintf("redirect owner %s to %q in %d", a.Session.Short(), a.Leader, a.Term)
	case node.RedirectLookup:
		return fmt.Sprintf("redirect lookup %d to %q in %d", a.Lookup, a.Leader, a.Term)
	}
	return fmt.Sprintf("%T", a)
}

func describeElection(a election.Action) string {
	switch a := a.(type) {
	case election.Note:
		return ""
	case election.Read:
		return "read"
	case election.Swap:
		return fmt.Sprintf("swap for term %d", a.New.Term)
	case election.Lead:
		return fmt.Sprintf("lead in %d", a.Term)
	case election.Extend:
		return "go on until " + a.Until.String()
	case election.StepDown:
		return "step down"
	}
	return fmt.Sprintf("%T", a)
}

func describeManager(a node.Manage) string {
	prefix := fmt.Sprintf("%s in %d: ", a.Namespace, a.Term)
	switch act := a.Action.(type) {
	case manager.Note:
		return ""
	case manager.Send:
		return prefix + fmt.Sprintf("tell %s %d", act.Reply.Session.Short(), len(act.Reply.Offers))
	case manager.Answer:
		return prefix + fmt.Sprintf("answer lookup %d at %d", act.Lookup, act.Reply.LSN)
	case manager.Broadcast:
		return prefix + fmt.Sprintf("broadcast %d", act.Reply.LSN)
	case manager.Commit:
		return prefix + fmt.Sprintf("commit %d to %d", act.Batch.Prev, act.Batch.Last())
	case manager.ReadEnd:
		return prefix + "read end"
	case manager.Outranked:
		return prefix + fmt.Sprintf("outranked by %d", act.By)
	case manager.Deposed:
		return prefix + fmt.Sprintf("deposed by %d", act.By)
	}
	return prefix + fmt.Sprintf("%T", a.Action)
}

func holder(name leasehold.OwnerID) *table.Holder {
	return &table.Holder{Owner: name, Session: leasehold.Session{name[0]}, Addr: "o", Weight: 1}
}

// request is the next word of an owner that has done all that it was told.
func (p *process) request(ns leasehold.Namespace, name leasehold.OwnerID, seq protocol.Seq) node.Request {
	r := &protocol.LeaseRequest{Namespace: ns, Holder: holder(name), Seq: seq}
	if heard := p.replies[r.Holder.Session]; heard != nil {
		r.Term, r.Heard, r.Applied = heard.Term, heard.Seq, heard.Seq
		for _, o := range heard.Offers {
			r.Leases = append(r.Leases, o.Lease)
		}
	}
	return node.Request{LeaseRequest: r}
}

func lookupRequest(ns leasehold.Namespace) node.Lookup {
	return node.Lookup{LookupRequest: &protocol.LookupRequest{Namespace: ns, Lookup: 7, Seq: 1}}
}

func TestConfigRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*node.Config)
		want  string
	}{
		{"a bad election", func(c *node.Config) { c.Election.Self = "" }, `election: Self, Session and Rand must be set`},
		{"a bad namespace", func(c *node.Config) { c.Namespaces[1].Rand = nil }, `manager "x": Self and Rand must be set`},
		{"a namespace twice", func(c *node.Config) { c.Namespaces = append(c.Namespaces, managerConfig("y")) }, `manager "y": namespace is there twice`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := processConfig()
			c.spoil(&cfg)
			_, err := node.New(0, cfg)
			if err == nil {
				t.Fatal("it is accepted")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" || !errors.Is(err, leasehold.Invalid) {
				t.Errorf("kind %v (-want +got):\n%s", leasehold.KindOf(err), diff)
			}
		})
	}
}

func TestRedirectsWhileItDoesNotLead(t *testing.T) {
	p := standby(t)
	p.step(0, p.request("x", "ann", 1), `redirect owner 61000000 to "" in 0`)
	p.elects(10*ms, election.Seen{Record: storage.Record{Version: 4, Term: 3, Leader: "other", Session: leasehold.Session{2}}})
	p.step(20*ms, p.request("x", "ann", 2), `redirect owner 61000000 to "other" in 3`)
	p.step(20*ms, p.request("nowhere", "ann", 3), `redirect owner 61000000 to "other" in 3`)
	p.step(20*ms, lookupRequest("y"), `redirect lookup 7 to "other" in 3`)
	p.step(20*ms, node.Request{LeaseRequest: &protocol.LeaseRequest{Namespace: "x"}}) // whom to tell?
	if p.machine.Manager("x") != nil || p.machine.Leads(20*ms) {
		t.Error("it leads")
	}
}

// A namespace answers as soon as its own table is there.
func TestNamespacesLoadOnTheirOwn(t *testing.T) {
	p := elected(t)
	p.step(0, p.request("y", "ann", 1), `redirect owner 61000000 to "" in 1`)
	p.loads(10*ms, "y", 1, &storage.State{Term: 1})
	p.step(20*ms, p.request("y", "ann", 2), "y in 1: tell 61000000 0")
	p.step(20*ms, p.request("x", "bob", 1), `redirect owner 62000000 to "" in 1`)
	p.step(20*ms, lookupRequest("y"), "y in 1: answer lookup 7 at 0")
	p.step(20*ms, lookupRequest("x"), `redirect lookup 7 to "" in 1`)
	if p.machine.Manager("x") != nil || p.machine.Manager("y") == nil || p.machine.Manager("nowhere") != nil {
		t.Error("not y alone is led")
	}
}

// What owners say goes to the namespace that they name, and what it does says
// nothing in the other.
func TestRoutesByNamespace(t *testing.T) {
	p := leader(t)
	p.step(10*ms, p.request("x", "ann", 1), "x in 1: tell 61000000 0")
	p.step(20*ms, p.request("y", "bob", 1), "y in 1: tell 62000000 0")
	p.step(30*ms, p.request("x", "ann", 2), "x in 1: tell 61000000 0", "x in 1: commit 0 to 1")
	p.manages(40*ms, "y", 1, manager.Committed{Outcome: storage.Done}) // y has asked for nothing
	p.manages(50*ms, "x", 1, manager.Committed{Outcome: storage.Done}, "x in 1: broadcast 1", "x in 1: tell 61000000 1")
	if x, y := p.machine.Manager("x").Table().LSN(), p.machine.Manager("y").Table().LSN(); x != 1 || y != 0 {
		t.Errorf("x is at lsn %d and y at %d, want 1 and 0", x, y)
	}
	p.manages(60*ms, "nowhere", 1, manager.Committed{Outcome: storage.Done})
}

// Authority that is extended is extended for all, and the passing of time
// reaches all.
func TestExtendsAuthority(t *testing.T) {
	p := leader(t)
	p.advance(1*second, "swap for term 1")
	p.elects(1100*ms, election.Swapped{Outcome: storage.Done, Version: 2}, "go on until 4.000s")
	p.step(3500*ms, p.request("x", "ann", 1), "x in 1: tell 61000000 0", "swap for term 1")
	p.step(4*second, p.request("y", "bob", 1)) // its time is over
	if p.machine.Leads(4 * second) {
		t.Error("it leads at 4 s")
	}
}

func TestLoadIsRepeated(t *testing.T) {
	for _, c := range []struct {
		name  string
		state *storage.State
	}{
		{"no answer", nil},
		{"an answer from before we were elected", &storage.State{Term: 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := elected(t)
			p.loads(0, "y", 1, &storage.State{Term: 1})
			p.loads(100*ms, "x", 1, c.state)
			if p.wake > 300*ms {
				t.Errorf("it wants to be woken at %v, and loads again at 0.3 s", p.wake)
			}
			p.advance(299 * ms)
			p.advance(300*ms, "load x in 1")
			p.advance(900 * ms) // once
			p.loads(950*ms, "x", 1, &storage.State{Term: 1})
			if p.machine.Manager("x") == nil {
				t.Error("x is not led")
			}
		})
	}
}

// A second answer does not start a namespace again.
func TestLoadedTwice(t *testing.T) {
	p := leader(t)
	led := p.machine.Manager("x")
	p.loads(10*ms, "x", 1, &storage.State{Term: 1})
	p.loads(10*ms, "nowhere", 1, &storage.State{Term: 1})
	if p.machine.Manager("x") != led {
		t.Error("x was started again")
	}
}

func TestLoadFindsALaterLeader(t *testing.T) {
	p := elected(t)
	p.loads(10*ms, "x", 1, &storage.State{Term: 4}, "step down", "swap for term 5")
	p.loads(20*ms, "y", 1, &storage.State{Term: 1}) // too late
	if p.machine.Manager("x") != nil || p.machine.Manager("y") != nil {
		t.Error("it still leads")
	}
}

// Answers of the store that an earlier term asked for are not the present
// term's.
func TestLateAnswersAreDropped(t *testing.T) {
	p := leader(t)
	p.step(10*ms, p.request("x", "ann", 1), "x in 1: tell 61000000 0")
	p.step(20*ms, p.request("x", "ann", 2), "x in 1: tell 61000000 0", "x in 1: commit 0 to 1")
	p.elects(30*ms, election.Slept{}, "step down", "swap for term 2")
	p.manages(40*ms, "x", 1, manager.Committed{Outcome: storage.Done}) // nobody leads
	p.elects(50*ms, election.Swapped{Outcome: storage.Done, Version: 2}, "load x in 2", "load y in 2", "lead in 2")
	p.loads(60*ms, "x", 1, &storage.State{Term: 1}) // for the earlier term
	p.loads(60*ms, "x", 1, &storage.State{Term: 2}) // the same, read late
	if p.machine.Manager("x") != nil {
		t.Fatal("it took the earlier term's table")
	}
	p.loads(70*ms, "x", 2, &storage.State{Term: 2})
	p.step(80*ms, p.request("x", "ann", 3), "x in 2: tell 61000000 0")
	p.step(90*ms, p.request("x", "ann", 4), "x in 2: tell 61000000 0", "x in 2: commit 0 to 1")
	p.manages(100*ms, "x", 1, manager.Committed{Outcome: storage.Done})
	p.manages(100*ms, "x", 1, manager.LogEnd{Term: 1, LSN: 1})
	if lsn := p.machine.Manager("x").Table().LSN(); lsn != 0 {
		t.Fatalf("it took the earlier term's commit for its own: lsn %d", lsn)
	}
	p.manages(110*ms, "x", 2, manager.Committed{Outcome: storage.Done}, "x in 2: broadcast 1", "x in 2: tell 61000000 1")
}

func TestStepsDownForAll(t *testing.T) {
	p := leader(t)
	p.elects(500*ms, election.Seen{Record: storage.Record{Version: 2, Term: 2, Leader: "other", Session: leasehold.Session{2}}}, "step down", "read")
	p.step(600*ms, p.request("x", "ann", 1), `redirect owner 61000000 to "other" in 2`)
	p.step(600*ms, lookupRequest("y"), `redirect lookup 7 to "other" in 2`)
	p.advance(1*second, "read")
}

// An owner that has heard of a later leader makes this one look, and what the
// store says deposes it, in every namespace.
func TestOutrankedByAnOwner(t *testing.T) {
	p := leader(t)
	r := p.request("x", "ann", 1)
	r.Term, r.Heard = 6, 1
	p.step(500*ms, r, "x in 1: outranked by 6", "swap for term 1")
	if p.machine.Manager("y") == nil || !p.machine.Leads(500*ms) {
		t.Error("an owner's word ends the leadership")
	}
	p.elects(600*ms, election.Swapped{Outcome: storage.Conflict}, "read")
	p.elects(700*ms, election.Seen{Record: storage.Record{Version: 2, Term: 6, Leader: "other", Session: leasehold.Session{2}}}, "step down")
	if p.machine.Manager("y") != nil || p.machine.Leads(700*ms) {
		t.Error("y is still led")
	}
	p.step(800*ms, p.request("x", "ann", 2), `redirect owner 61000000 to "other" in 6`)
}

// A commit that the store refuses, because another leads, deposes too.
func TestDeposedByTheStore(t *testing.T) {
	p := leader(t)
	p.step(10*ms, p.request("x", "ann", 1), "x in 1: tell 61000000 0")
	p.step(20*ms, p.request("x", "ann", 2), "x in 1: tell 61000000 0", "x in 1: commit 0 to 1")
	p.manages(30*ms, "x", 1, manager.Committed{Outcome: storage.Conflict}, "x in 1: read end")
	p.manages(40*ms, "x", 1, manager.LogEnd{Term: 2, LSN: 3}, "x in 1: deposed by 2", "step down", "swap for term 3")
}

// A namespace that has something to do in time is woken in time.
func TestWakesNamespaces(t *testing.T) {
	p := leader(t)
	p.step(10*ms, p.request("x", "ann", 1), "x in 1: tell 61000000 0")
	p.step(20*ms, p.request("x", "ann", 2), "x in 1: tell 61000000 0", "x in 1: commit 0 to 1")
	p.manages(30*ms, "x", 1, manager.Committed{Outcome: storage.Unknown}, "x in 1: read end")
	p.manages(40*ms, "x", 1, manager.LogEnd{Err: true})
	if p.wake > 240*ms {
		t.Errorf("it wants to be woken at %v, and reads again within 0.2 s", p.wake)
	}
	p.advance(p.wake, "x in 1: read end")
}

// The stored log is ours alone: one that does not replay is no reason to go
// on.
func TestPanicsOnBrokenLog(t *testing.T) {
	p := elected(t)
	defer func() {
		if recover() == nil {
			t.Error("it leads from a log that does not replay")
		}
	}()
	p.machine.Step(0, node.Loaded{Namespace: "x", Term: 1, State: &storage.State{Term: 1, Changes: []table.Change{{LSN: 5}}}})
}
