package managerproc_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// Every process here leads for 3 s at a time, renews every second, and has the namespaces x and y
// in the catalog.
const (
	second = mono.Instant(time.Second)
	ms     = mono.Instant(time.Millisecond)
)

// entry is the initial configuration of a namespace: leases of 10 s, for which a leader waits 12 s.
func entry(ns leasehold.Namespace) storage.Namespace {
	return storage.Namespace{Name: ns, Lease: 10 * time.Second, Renew: 2500 * time.Millisecond, Drift: 1.2, Policy: "even"}
}

// shorter is a namespace with leases of 2 s that were 10 s before.
func shorter(ns leasehold.Namespace) storage.Namespace {
	return entry(ns).Promising(2*time.Second, 500*time.Millisecond, 1.2)
}

// deleted is a deleted namespace.
func deleted(ns leasehold.Namespace) storage.Namespace {
	e := entry(ns)
	e.Deleted = true
	return e
}

// catalog is the stored catalog in term 1.
func catalog(version storage.Version, entries ...storage.Namespace) *storage.Catalog {
	c := &storage.Catalog{Version: version, Term: 1}
	for _, e := range entries {
		c = c.With(e)
	}
	return c
}

func configure(n storage.Namespace) (manager.Config, error) {
	if n.Policy != "even" {
		return manager.Config{}, leasehold.Errorf("configure", leasehold.ErrInvalid, string(n.Name), "there is no policy %q", n.Policy)
	}
	return manager.Config{Timing: protocol.Timing{Lease: n.Lease, Renew: n.Renew, Drift: n.Drift}, Policy: partition.Even{}}, nil
}

func processConfig() managerproc.Config {
	return managerproc.Config{
		Election:  byrecord.Config{Self: "me", Session: leasehold.Session{1}, TTL: 3 * time.Second, Rand: rand.New(rand.NewPCG(1, 2))},
		Configure: configure,
		Rand:      rand.New(rand.NewPCG(3, 4)),
	}
}

// A process is a manager process in a test that executes its actions by hand.
type process struct {
	t       *testing.T
	machine *managerproc.Machine
	wake    mono.Instant
	version storage.Version                            // of the leader record, where it matters
	swap    byrecord.Swap                              // the last one
	replies map[leasehold.Session]*protocol.LeaseReply // the newest to each owner
}

// standby returns a process that has read the leader record.
func standby(t *testing.T) *process {
	t.Helper()
	return standbyWith(t, processConfig())
}

func standbyWith(t *testing.T, cfg managerproc.Config) *process {
	t.Helper()
	m, err := managerproc.New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, machine: m, replies: make(map[leasehold.Session]*protocol.LeaseReply)}
	p.advance(0, "read")
	return p
}

// elected returns a process that leads in term 1 until 3 s, and has not read the catalog.
func elected(t *testing.T) *process {
	t.Helper()
	p := standby(t)
	p.elects(0, byrecord.Seen{}, "swap for term 1")
	p.elects(0, byrecord.Swapped{Outcome: storage.Done, Version: 1}, "read catalog in 1", "lead in 1")
	return p
}

// informed returns a leader that has read the catalog, and no table.
func informed(t *testing.T) *process {
	t.Helper()
	p := elected(t)
	p.reads(0, catalog(1, entry("x"), entry("y")), "load x in 1", "load y in 1")
	return p
}

// leader returns a leader that has loaded both namespaces, which are empty.
func leader(t *testing.T) *process {
	t.Helper()
	p := informed(t)
	p.loads(0, "x", 1, &storage.State{Term: 1}, "serve x in 1")
	p.loads(0, "y", 1, &storage.State{Term: 1}, "serve y in 1")
	return p
}

// follows returns a standby of a leader in term 3, which has just renewed its record.
func follows(t *testing.T) *process {
	t.Helper()
	p := standby(t)
	p.elects(0, byrecord.Seen{Record: storage.Record{Version: 4, Term: 3, Leader: "other", Session: leasehold.Session{2}}})
	return p
}

func (p *process) step(now mono.Instant, e managerproc.Event, want ...string) {
	p.t.Helper()
	if s, ok := e.(managerproc.Election); ok {
		if s, ok := s.Event.(byrecord.Swapped); ok {
			s.Swap = p.swap // reply to the last one
			e = managerproc.Election{Event: s}
		}
	}
	actions, wake := p.machine.Step(now, e)
	p.compare(now, fmt.Sprintf("%T", e), actions, wake, want)
}

func (p *process) advance(now mono.Instant, want ...string) {
	p.t.Helper()
	actions, wake := p.machine.Advance(now)
	p.compare(now, "time", actions, wake, want)
}

func (p *process) elects(now mono.Instant, e byrecord.Event, want ...string) {
	p.t.Helper()
	p.step(now, managerproc.Election{Event: e}, want...)
}

// nodeSwapped is a successful write of the leader record.
func (p *process) nodeSwapped(v storage.Version) managerproc.Event {
	return managerproc.Election{Event: byrecord.Swapped{Swap: p.swap, Outcome: storage.Done, Version: v}}
}

func (p *process) reads(now mono.Instant, c *storage.Catalog, want ...string) {
	p.t.Helper()
	p.step(now, managerproc.Catalogued{Term: 1, Catalog: c}, want...)
}

func (p *process) loads(now mono.Instant, ns leasehold.Namespace, term leasehold.Term, s *storage.State, want ...string) {
	p.t.Helper()
	p.step(now, managerproc.Loaded{Namespace: ns, Term: term, State: s}, want...)
}

func (p *process) manages(now mono.Instant, ns leasehold.Namespace, term leasehold.Term, e manager.Event, want ...string) {
	p.t.Helper()
	p.step(now, managerproc.Manager{Namespace: ns, Term: term, Event: e}, want...)
}

// compare ignores notes: other tests check them.
func (p *process) compare(now mono.Instant, what string, actions []managerproc.Action, wake mono.Instant, want []string) {
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

// describe formats an action.
func (p *process) describe(a managerproc.Action) string {
	switch a := a.(type) {
	case managerproc.Elect:
		if s, ok := a.Action.(byrecord.Swap); ok {
			p.swap = s
		}
		return describeElection(a.Action)
	case managerproc.Manage:
		if s, ok := a.Action.(manager.Send); ok {
			p.replies[s.Reply.Session] = s.Reply
		}
		return describeManager(a)
	case managerproc.LoadCatalog:
		return fmt.Sprintf("read catalog in %d", a.Term)
	case managerproc.Load:
		return fmt.Sprintf("load %s in %d", a.Namespace, a.Term)
	case managerproc.Settle:
		if a.Entry.Deleted {
			return fmt.Sprintf("remove %s in %d", a.Entry.Name, a.Term)
		}
		return fmt.Sprintf("settle %s in %d: %v", a.Entry.Name, a.Term, a.Entry.Promised)
	case managerproc.Serves:
		return fmt.Sprintf("serve %s in %d", a.Namespace, a.Term)
	case managerproc.Parked:
		return fmt.Sprintf("park %s: %v", a.Namespace, a.Why)
	case managerproc.RedirectOwner:
		return fmt.Sprintf("redirect owner %s to %q in %d", a.Session.Short(), a.Leader, a.Term)
	case managerproc.RefuseOwner:
		return fmt.Sprintf("refuse owner %s: %v", a.Session.Short(), leasehold.KindOf(a.Why))
	case managerproc.DeathReply:
		return fmt.Sprintf("reply to notice %d: %d", a.ID, a.Outcome)
	case managerproc.RedirectDeath:
		return fmt.Sprintf("redirect notice %d to %q in %d", a.ID, a.Leader, a.Term)
	}
	return describeLookup(a)
}

func describeLookup(a managerproc.Action) string {
	switch a := a.(type) {
	case managerproc.RedirectLookup:
		return fmt.Sprintf("redirect lookup %d to %q in %d", a.Lookup, a.Leader, a.Term)
	case managerproc.RefuseLookup:
		return fmt.Sprintf("refuse lookup %d: %v", a.Lookup, leasehold.KindOf(a.Why))
	case managerproc.Follow:
		return fmt.Sprintf("follow %s at %q: #%d from %d", a.Namespace, a.To, a.Request.Seq, a.Request.LSN)
	case managerproc.Answer:
		return fmt.Sprintf("answer lookup %d at %d, %v old", a.Lookup, a.Reply.LSN, a.Reply.Age)
	case managerproc.Relay:
		return fmt.Sprintf("relay %s at %d", a.Namespace, a.Reply.LSN)
	case managerproc.Note:
		return ""
	}
	return fmt.Sprintf("%T", a)
}

func describeElection(a byrecord.Action) string {
	switch a := a.(type) {
	case byrecord.Note:
		return ""
	case byrecord.Read:
		return "read"
	case byrecord.Swap:
		return fmt.Sprintf("swap for term %d", a.New.Term)
	case byrecord.Lead:
		return fmt.Sprintf("lead in %d", a.Term)
	case byrecord.Extend:
		return "extend until " + a.Until.String()
	case byrecord.StepDown:
		return "step down"
	}
	return fmt.Sprintf("%T", a)
}

func describeManager(a managerproc.Manage) string {
	prefix := fmt.Sprintf("%s in %d: ", a.Namespace, a.Term)
	switch act := a.Action.(type) {
	case manager.Note:
		return ""
	case manager.Send:
		return prefix + fmt.Sprintf("send %s %d", act.Reply.Session.Short(), len(act.Reply.Offers))
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

// request is the next request of an owner that has applied all replies.
func (p *process) request(ns leasehold.Namespace, name leasehold.OwnerID, seq protocol.Seq) managerproc.Request {
	r := &protocol.LeaseRequest{Namespace: ns, Holder: holder(name), Seq: seq}
	if last := p.replies[r.Holder.Session]; last != nil {
		r.Term, r.Heard, r.Applied = last.Term, last.Seq, last.Seq
		for _, o := range last.Offers {
			r.Leases = append(r.Leases, o.Lease)
		}
	}
	return managerproc.Request{LeaseRequest: r}
}

func lookupRequest(ns leasehold.Namespace) managerproc.Lookup {
	return managerproc.Lookup{LookupRequest: &protocol.LookupRequest{Namespace: ns, Lookup: 7, Seq: 1}}
}

// answers is a reply of the leader in term 3 with its table.
func answers(ns leasehold.Namespace, echo protocol.Seq, t *table.Table) managerproc.Followed {
	return managerproc.Followed{Namespace: ns, Event: lookup.Reply{LookupReply: &protocol.LookupReply{
		Namespace: ns, Leader: "other", Term: 3, Echo: echo, LSN: t.LSN(), Snapshot: t,
	}}}
}

// grown is a table with one lease.
func grown() *table.Table {
	t := table.New()
	if err := t.Apply(&table.Change{LSN: 1, Kind: table.Granted, Range: leasehold.All, Generation: 1, Holder: holder("ann")}); err != nil {
		panic(err)
	}
	return t
}
