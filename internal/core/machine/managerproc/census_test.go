package managerproc_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/bylease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// appointed returns a process without a store that leads in term 5 until 3 s, and is about to load
// the namespace x.
func appointed(t *testing.T) *process {
	t.Helper()
	cfg := processConfig()
	cfg.Election = byrecord.Config{}
	cfg.Appointment = &bylease.Config{Self: "me"}
	m, err := managerproc.New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, machine: m, replies: make(map[leasehold.Session]*protocol.LeaseReply)}
	p.advance(0)
	p.step(0, managerproc.Appointment{Event: bylease.Appointed{Term: 5, Until: 3 * second}}, "read catalog in 5", "lead in 5")
	p.catalogues(1, entry("x"), "load x in 5")
	return p
}

func (p *process) catalogues(version storage.Version, e storage.Namespace, want ...string) {
	p.t.Helper()
	c := catalog(version, e)
	c.Term = 5
	p.step(0, managerproc.Catalogued{Term: 5, Catalog: c}, want...)
}

// surveys returns such a process with a running census of x.
func surveys(t *testing.T) *process {
	t.Helper()
	p := appointed(t)
	p.loads(0, "x", 5, &storage.State{Term: 5, Unknown: true}, "serve x in 5")
	if p.machine.Census("x") == nil || p.machine.Manager("x") != nil {
		t.Fatal("want a census, and no manager of x")
	}
	return p
}

// holds is the request of an owner that claims all keys; term is the leader that it acknowledges.
func holds(name leasehold.OwnerID, seq protocol.Seq, term leasehold.Term) managerproc.Request {
	return managerproc.Request{LeaseRequest: &protocol.LeaseRequest{
		Namespace: "x", Holder: holder(name), Seq: seq, Term: term,
		Leases: []leasehold.Lease{{Range: leasehold.All, Generation: 7}},
	}}
}

// With an unknown table there is a census of the owners, and its result is the first snapshot of
// the log.
func TestCensusComesBeforeLeading(t *testing.T) {
	p := surveys(t)
	p.step(0, lookupRequest("x"), `redirect lookup 7 to "" in 5`) // an empty table would report everything as lost
	p.step(10*ms, holds("ann", 1, 4), "x in 5: send 61000000 1")
	p.step(20*ms, holds("ann", 2, 5), "x in 5: send 61000000 1", "x in 5: manager.SaveSnapshot")
	m := p.machine.Manager("x")
	if m == nil || p.machine.Census("x") != nil {
		t.Fatal("x is not led")
	}
	if lsn, _ := storage.First(5); m.Table().LSN() != lsn {
		t.Errorf("the log begins at %d, want %d", m.Table().LSN(), lsn)
	}
	p.step(30*ms, holds("ann", 3, 5), "x in 5: send 61000000 1")
	if got := p.replies[holder("ann").Session]; got.Seq != 3 || got.Collecting {
		t.Errorf("the next message has number %d, collecting %v", got.Seq, got.Collecting)
	}
}

// A namespace that was created in this term needs no census.
func TestNoCensusOfANewNamespace(t *testing.T) {
	p := surveys(t)
	c := catalog(2, entry("x"), entry("y"))
	c.Term = 5
	p.step(0, managerproc.Catalogued{Term: 5, Catalog: c}, "load y in 5")
	p.loads(10*ms, "y", 5, &storage.State{Term: 5, Unknown: true}, "serve y in 5", "y in 5: manager.SaveSnapshot")
	if p.machine.Manager("y") == nil {
		t.Error("y, which is new, is not led")
	}
	if p.machine.Census("x") == nil {
		t.Error("the census of x has ended")
	}
}

func TestCensusEndsWithTime(t *testing.T) {
	p := surveys(t)
	if p.wake > 12*second {
		t.Errorf("wake time %v", p.wake)
	}
	p.advance(12 * second) // its authority has expired
	if p.machine.Manager("x") != nil {
		t.Error("x is led without authority")
	}
	p.step(12*second, managerproc.Appointment{Event: bylease.Extended{Term: 5, Until: 15 * second}},
		"x in 5: manager.SaveSnapshot", "extend until 15.000s")
	if p.machine.Manager("x") == nil {
		t.Error("x is not led")
	}
}

// A new configuration restarts the census, with higher sequence numbers.
func TestCensusBeginsAgain(t *testing.T) {
	p := surveys(t)
	p.step(10*ms, holds("ann", 1, 4), "x in 5: send 61000000 1")
	p.catalogues(2, shorter("x"), "load x in 5")
	p.loads(0, "x", 5, &storage.State{Term: 5, Unknown: true}, "serve x in 5")
	p.step(20*ms, holds("ann", 2, 4), "x in 5: send 61000000 1")
	if got := p.replies[holder("ann").Session]; got.Seq != 2 || got.Timing.Lease != 2*time.Second {
		t.Errorf("message %d has leases of %v", got.Seq, got.Timing.Lease)
	}
	if left := p.machine.Census("x").Left(0); left != 12*time.Second {
		t.Errorf("the census lasts for %v, although owners may hold leases for 12 s", left)
	}
}

// A census ends with the leadership, and with its namespace.
func TestCensusIsDropped(t *testing.T) {
	p := surveys(t)
	p.step(0, managerproc.Appointment{Event: bylease.Dismissed{}}, "step down")
	if p.machine.Census("x") != nil {
		t.Error("the census goes on")
	}
	p = surveys(t)
	p.catalogues(2, entry("y"), "load y in 5")
	if p.machine.Census("x") != nil {
		t.Error("the census goes on without a namespace")
	}
	p = surveys(t)
	odd := entry("x")
	odd.Policy = "odd"
	p.catalogues(2, odd, `park x: configure "x": there is no policy "odd"`)
	if p.machine.Census("x") != nil {
		t.Error("the census goes on without a configuration")
	}
}

// A table that is in memory, from earlier in the term, needs no census.
func TestNoCensusWithinATerm(t *testing.T) {
	p := appointed(t)
	p.loads(0, "x", 5, &storage.State{Term: 5}, "serve x in 5")
	if p.machine.Census("x") != nil || p.machine.Manager("x") == nil {
		t.Error("there is a census of a known table")
	}
}

// A manager with Appointment ignores elections, and vice versa.
func TestAppointmentIgnoresElections(t *testing.T) {
	p := standby(t)
	p.step(0, managerproc.Appointment{Event: bylease.Appointed{Term: 5, Until: mono.Never}})
	if p.machine.Leads(0) {
		t.Error("the manager leads by a lease although it has an election")
	}
	cfg := processConfig()
	cfg.Appointment = &bylease.Config{}
	if _, err := managerproc.New(0, cfg); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("a manager without a name: %v", err)
	}
}
