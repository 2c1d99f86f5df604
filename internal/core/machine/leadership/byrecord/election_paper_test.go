package byrecord_test

// These tests check the election against the statements of Centrifuge 2.1.1 and PRS 4.4 about the
// leader: which manager may act, and when another one may. Each is named after the statement that
// it proves.
//
// The papers' store grants a leader lease. Ours only provides compare-and-swap, so the managers do
// the waiting that their store does: most tests are about that.

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

const (
	paperTTL   = 30 * time.Second
	paperDrift = mono.Drift(1.2)
	// paperTick is the resolution of true time.
	paperTick = 10 * time.Millisecond
)

// A paperGroup is a set of managers with a common store, and true time. Each manager's clock has
// its own origin and rate.
type paperGroup struct {
	t       *testing.T
	now     time.Duration
	record  storage.Record
	members []*paperMember
	// led has the leader of every term.
	led map[leasehold.Term]storage.ManagerID
}

type paperMember struct {
	group   *paperGroup
	id      storage.ManagerID
	machine *byrecord.Machine
	rate    float64
	origin  mono.Instant
	dead    bool
	starts  byte

	cut     bool          // requests do not reach the store
	latency time.Duration // of each direction to the store
	due     []paperEvent
}

// A paperEvent is a message in flight.
type paperEvent struct {
	at time.Duration
	do func()
}

func newPaperGroup(t *testing.T, rates ...float64) *paperGroup {
	t.Helper()
	g := &paperGroup{t: t, led: map[leasehold.Term]storage.ManagerID{}}
	for i, rate := range rates {
		m := &paperMember{
			group: g, id: storage.ManagerID("abcdef"[i : i+1]), rate: rate,
			origin: mono.Instant(i+1) * mono.Instant(time.Hour),
		}
		g.members = append(g.members, m)
		m.start()
	}
	return g
}

func (m *paperMember) start() {
	m.starts++
	var err error
	m.machine, err = byrecord.New(m.clock(), byrecord.Config{
		Self: m.id, Session: leasehold.Session{m.id[0], m.starts}, TTL: paperTTL, Drift: paperDrift,
		Rand: rand.New(rand.NewPCG(uint64(m.origin), 9)),
	})
	if err != nil {
		m.group.t.Fatal(err)
	}
	m.dead = false
	m.did(m.machine.Advance(m.clock()))
}

// clock returns the member's own clock.
func (m *paperMember) clock() mono.Instant {
	return m.origin.Add(time.Duration(float64(m.group.now) * m.rate))
}

func (m *paperMember) leads() bool { return !m.dead && m.machine.Leads(m.clock()) }

func (m *paperMember) step(e byrecord.Event) {
	if !m.dead {
		m.did(m.machine.Step(m.clock(), e))
	}
}

func (m *paperMember) did(actions []byrecord.Action, _ mono.Instant) {
	for _, a := range actions {
		switch a := a.(type) {
		case byrecord.Read, byrecord.Swap:
			m.send(a)
		case byrecord.Lead:
			g := m.group
			if before, taken := g.led[a.Term]; taken {
				g.t.Errorf("%s leads in term %d, in which %s led", m.id, a.Term, before)
			}
			g.led[a.Term] = m.id
		case byrecord.Resigned:
			m.dead = true
		}
	}
}

// send sends a request to the store, and then its reply.
func (m *paperMember) send(a byrecord.Action) {
	g := m.group
	m.after(m.latency, func() {
		if m.cut {
			m.after(m.latency, func() { m.step(unanswered(a)) })
			return
		}
		answer := g.serve(a)
		m.after(m.latency, func() { m.step(answer) })
	})
}

func (m *paperMember) after(d time.Duration, do func()) {
	m.due = append(m.due, paperEvent{m.group.now + d, do})
}

func (g *paperGroup) serve(a byrecord.Action) byrecord.Event {
	swap, ok := a.(byrecord.Swap)
	switch {
	case !ok:
		return byrecord.Seen{Record: g.record}
	case swap.Prev != g.record.Version:
		return byrecord.Swapped{Swap: swap, Outcome: storage.Conflict}
	}
	version := g.record.Version + 1
	g.record = swap.New
	g.record.Version = version
	return byrecord.Swapped{Swap: swap, Outcome: storage.Done, Version: version}
}

func unanswered(a byrecord.Action) byrecord.Event {
	if swap, ok := a.(byrecord.Swap); ok {
		return byrecord.Swapped{Swap: swap, Outcome: storage.Unknown}
	}
	return byrecord.ReadFailed{}
}

// run advances true time, and checks that no two managers lead.
func (g *paperGroup) run(d time.Duration) {
	g.t.Helper()
	for end := g.now + d; g.now < end; g.now += paperTick {
		for _, m := range g.members {
			for i := 0; i < len(m.due); i++ {
				if e := m.due[i]; e.at <= g.now {
					m.due = append(m.due[:i:i], m.due[i+1:]...)
					i = -1 // it may have added others
					e.do()
				}
			}
			if !m.dead {
				m.did(m.machine.Advance(m.clock()))
			}
		}
		g.leader()
	}
}

// leader returns the leading member, nil if there is none.
func (g *paperGroup) leader() *paperMember {
	g.t.Helper()
	var leader *paperMember
	for _, m := range g.members {
		if !m.leads() {
			continue
		}
		if leader != nil {
			g.t.Fatalf("at %v both %s and %s lead", g.now, leader.id, m.id)
		}
		leader = m
	}
	return leader
}

// elect returns a group with a leader.
func elect(t *testing.T, rates ...float64) (*paperGroup, *paperMember) {
	t.Helper()
	g := newPaperGroup(t, rates...)
	g.run(time.Second)
	leader := g.leader()
	if leader == nil {
		t.Fatal("a new group has no leader")
	}
	return g, leader
}

// untilLeader runs until there is a leader, and returns the time that it took.
func (g *paperGroup) untilLeader() (*paperMember, time.Duration) {
	g.t.Helper()
	start := g.now
	for g.leader() == nil {
		if g.now-start > time.Hour {
			g.t.Fatal("no leader for an hour")
		}
		g.run(paperTick)
	}
	return g.leader(), g.now - start
}

// Centrifuge 2.1.1: one of the standbys is elected leader. The others repeatedly request the
// leadership, and are refused while the leader is alive.
func TestPaperOneStandbyIsElected(t *testing.T) {
	g, leader := elect(t, 1, 1, 1)
	for range 20 {
		g.run(paperTTL)
		if g.leader() != leader {
			t.Fatalf("the leader is alive, and %v leads", g.leader())
		}
	}
	if len(g.led) != 1 {
		t.Errorf("%d terms, want one", len(g.led))
	}
}

// Centrifuge 2.1.1: when the leader does not respond any more, a standby takes over. PRS 4.4: after
// a short time, and without an operator.
func TestPaperAStandbyTakesOver(t *testing.T) {
	g, leader := elect(t, 1, 1, 1)
	g.run(10 * paperTTL)
	leader.dead = true
	next, after := g.untilLeader()
	if next == leader {
		t.Fatal("a dead manager leads")
	}
	if most := paperDrift.Stretch(paperTTL) + paperTTL/6 + paperTick; after > most {
		t.Errorf("a standby leads after %v, want at most %v", after, most)
	}
}

// Centrifuge 2.1.1: one standby is enough. They fail one after the other, and there is a leader as
// long as one is left.
func TestPaperAnyStandbyIsEnough(t *testing.T) {
	g, leader := elect(t, 1, 1, 1, 1)
	for range 3 {
		leader.dead = true
		leader, _ = g.untilLeader()
		g.run(3 * paperTTL)
	}
	if len(g.led) != 4 {
		t.Errorf("%d terms, want four", len(g.led))
	}
}

// PRS 4.4 relies on a leader lease; Centrifuge 2.3.1 shows how to implement one with clocks that
// only agree on their rates. A leader that cannot reach the store stops before another one may
// start, with clock rates at the bound in either direction, and for any latency of the store.
func TestPaperTwoNeverLead(t *testing.T) {
	fast := 1.2
	for _, rates := range [][]float64{{1, 1}, {1, fast}, {fast, 1}} {
		for _, latency := range []time.Duration{0, 50 * time.Millisecond, 4 * time.Second} {
			g, _ := elect(t, rates...)
			for _, m := range g.members {
				m.latency = latency
			}
			for range 5 {
				g.run(2 * paperTTL)
				leader := g.leader()
				if leader == nil {
					t.Fatalf("rates %v, latency %v: no leader", rates, latency)
				}
				leader.cut = true
				for g.leader() == leader {
					g.run(paperTick) // checks that no other manager leads
				}
				next, _ := g.untilLeader()
				if next == leader {
					t.Fatalf("rates %v, latency %v: a partitioned leader still leads", rates, latency)
				}
				leader.cut = false
			}
		}
	}
}

// Centrifuge 2.3.1, for leaders: authority counts from the send time of the acknowledged write, and
// not from the acknowledgement.
func TestPaperLeadershipRunsFromTheSending(t *testing.T) {
	var now mono.Instant = 1000
	m, err := byrecord.New(now, byrecord.Config{
		Self: "a", Session: leasehold.Session{1}, TTL: paperTTL, Rand: rand.New(rand.NewPCG(1, 1)),
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Advance(now)
	actions, _ := m.Step(now, byrecord.Seen{}) // without a record, it sends one
	swap, _ := actions[len(actions)-1].(byrecord.Swap)
	sent := now
	now = now.Add(20 * time.Second)
	m.Step(now, byrecord.Swapped{Swap: swap, Outcome: storage.Done, Version: 1})
	if !m.Leads(sent.Add(paperTTL-1)) || m.Leads(sent.Add(paperTTL)) {
		t.Error("authority does not end exactly 30s after the send time")
	}
}

// Centrifuge 2.1.1 has a store that decides who may lead. If its reply is lost, the manager must
// not assume anything: it reads, and leads only if the record is its own.
func TestPaperAnUnknownElectionIsReadBack(t *testing.T) {
	for _, test := range []struct {
		name  string
		found func(ours storage.Record) storage.Record
		leads bool
		again bool // it sends the identical record again
	}{
		{"its own", func(ours storage.Record) storage.Record { ours.Version = 1; return ours }, true, false},
		{"its predecessor's", func(ours storage.Record) storage.Record {
			ours.Version, ours.Session = 1, leasehold.Session{9}
			return ours
		}, false, false},
		{"none yet", func(storage.Record) storage.Record { return storage.Record{} }, false, true},
		{"another's", func(storage.Record) storage.Record {
			return storage.Record{Version: 1, Term: 1, Leader: "b", Session: leasehold.Session{2}, Beat: 1}
		}, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := byrecord.New(0, byrecord.Config{
				Self: "a", Session: leasehold.Session{1}, TTL: paperTTL, Rand: rand.New(rand.NewPCG(1, 1)),
			})
			if err != nil {
				t.Fatal(err)
			}
			m.Advance(0)
			actions, _ := m.Step(0, byrecord.Seen{})
			first := swapIn(actions)
			if first == nil {
				t.Fatalf("without a record: actions %v", actions)
			}
			actions, _ = m.Step(1, byrecord.Swapped{Swap: *first, Outcome: storage.Unknown})
			if m.Leads(1) {
				t.Error("it leads before the read")
			}
			if len(actions) == 0 || actions[len(actions)-1] != (byrecord.Read{Fresh: true}) {
				t.Errorf("actions %v, want a fresh read", actions)
			}
			actions, _ = m.Step(2, byrecord.Seen{Record: test.found(first.New)})
			if m.Leads(2) != test.leads {
				t.Errorf("Leads = %t, want %t", m.Leads(2), test.leads)
			}
			again := swapIn(actions)
			if (again != nil) != test.again || again != nil && *again != *first {
				t.Errorf("swap %+v, want the identical swap: %t", again, test.again)
			}
		})
	}
}

func swapIn(actions []byrecord.Action) *byrecord.Swap {
	for _, a := range actions {
		if s, ok := a.(byrecord.Swap); ok {
			return &s
		}
	}
	return nil
}

// A leader whose clock stopped has measured less time than has passed. It steps down, and a renewal
// sent before does not extend its authority.
func TestPaperALeaderThatSleptStops(t *testing.T) {
	g, leader := elect(t, 1, 1)
	g.run(paperTTL)
	leader.latency = time.Second
	g.run(paperTTL/3 + 500*time.Millisecond) // a renewal is in flight
	asleep := g.now
	leader.dead = true // it is not, but this stops its events
	next, _ := g.untilLeader()
	leader.origin = leader.origin.Add(asleep - g.now)
	leader.dead = false
	leader.step(byrecord.Slept{})
	if leader.leads() {
		t.Error("it leads by a clock that had stopped")
	}
	g.run(2 * paperTTL)
	if g.leader() != next {
		t.Errorf("%v leads, want %s, which took over", g.leader(), next.id)
	}
}

// A swap sent before the clock stopped gives no authority, even if it succeeds: neither to continue
// a term in which the manager has stepped down, nor to begin one whose authority may have expired
// long ago.
func TestPaperASwapFromBeforeTheSleepGivesNoAuthority(t *testing.T) {
	for _, leading := range []bool{false, true} {
		m, err := byrecord.New(0, byrecord.Config{
			Self: "a", Session: leasehold.Session{1}, TTL: paperTTL, Rand: rand.New(rand.NewPCG(1, 1)),
		})
		if err != nil {
			t.Fatal(err)
		}
		m.Advance(0)
		sent, _ := m.Step(0, byrecord.Seen{})
		swap := sent[len(sent)-1].(byrecord.Swap)
		version := storage.Version(1)
		now := mono.Instant(1)
		if leading {
			_, now = m.Step(1, byrecord.Swapped{Swap: swap, Outcome: storage.Done, Version: version})
			version++
			sent, _ = m.Advance(now) // the renewal
			swap = sent[len(sent)-1].(byrecord.Swap)
		}
		m.Step(now, byrecord.Slept{})
		actions, _ := m.Step(now+1, byrecord.Swapped{Swap: swap, Outcome: storage.Done, Version: version})
		if m.Leads(now + 1) {
			t.Errorf("led before: %t: it leads by a record that it sent before the sleep", leading)
		}
		for _, a := range actions {
			if lead, ok := a.(byrecord.Lead); ok && leading {
				t.Errorf("it leads again in term %d", lead.Term)
			}
		}
	}
}

// PRS 4.2 has a nonce that distinguishes a manager's earlier incarnations. Ours is the term: it
// increases with every leader, also if the same manager leads again.
func TestPaperEveryLeaderHasANewTerm(t *testing.T) {
	g, leader := elect(t, 1)
	for want := range leasehold.Term(5) {
		if g.record.Term != want+1 {
			t.Fatalf("term %d, want %d", g.record.Term, want+1)
		}
		leader.dead = true
		g.run(time.Second)
		leader.start()
		if leader.leads() {
			t.Fatal("it leads at its start, in the term of its predecessor")
		}
		g.untilLeader()
	}
}

// A leader that resigns has stopped before it writes the resignation, so another one need not wait.
// This is not in the papers, whose leaders only crash.
func TestPaperAResignationNeedNotBeWaitedOut(t *testing.T) {
	g, leader := elect(t, 1, 1)
	g.run(paperTTL)
	leader.latency = time.Second
	leader.step(byrecord.Resign{})
	if leader.leads() {
		t.Error("a manager leads after its resignation")
	}
	next, after := g.untilLeader()
	if next == leader || after > time.Second+paperTTL/6+2*paperTick {
		t.Errorf("%s leads after %v, want the other manager within one poll", next.id, after)
	}
}
