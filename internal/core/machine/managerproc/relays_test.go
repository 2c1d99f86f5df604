package managerproc_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// lookupFrom is a lookup's request.
func lookupFrom(ns leasehold.Namespace, id uint64, lsn leasehold.LSN) managerproc.Lookup {
	return managerproc.Lookup{LookupRequest: &protocol.LookupRequest{Namespace: ns, Lookup: id, Seq: 1, LSN: lsn}}
}

// beats is a renewed leader record of term 3.
func beats(n uint64) byrecord.Event {
	return byrecord.Seen{Record: storage.Record{Version: storage.Version(4 + n), Term: 3, Leader: "other", Session: leasehold.Session{2}, Beat: n}}
}

func TestStandbyAnswersFromItsTable(t *testing.T) {
	p := follows(t)
	p.step(10*ms, lookupFrom("x", 7, 0), `follow x at "other": #1 from 0`)
	if p.machine.Followed("x") != nil || p.machine.Followed("y") != nil {
		t.Error("it has a table that it has not received")
	}
	p.step(20*ms, answers("x", 1, grown()), "answer lookup 7 at 1, 12ms old")
	p.step(110*ms, lookupFrom("x", 8, 1), "answer lookup 8 at 1, 120ms old")
	if got := p.machine.Followed("x"); got == nil || got.LSN() != 1 {
		t.Errorf("Followed is %v", got)
	}
}

// A standby without a known leader sends no requests, and its lookups wait.
func TestStandbyWithoutLeader(t *testing.T) {
	p := standby(t)
	p.step(0, lookupFrom("x", 7, 0))
	p.elects(10*ms, beats(0))
	p.advance(600*ms, "read", `follow x at "other": #2 from 0`)
	p.step(610*ms, answers("x", 2, grown()), "answer lookup 7 at 1, 12ms old")
}

// A standby does not follow itself if the leader record is of an earlier process of the same
// manager.
func TestStandbyDoesNotFollowItself(t *testing.T) {
	p := standby(t)
	p.elects(0, byrecord.Seen{Record: storage.Record{Version: 4, Term: 3, Leader: "me", Session: leasehold.Session{9}}})
	p.step(10*ms, lookupFrom("x", 7, 0))
}

func TestStandbyBroadcastsChanges(t *testing.T) {
	p := follows(t)
	p.step(10*ms, lookupFrom("x", 7, 0), `follow x at "other": #1 from 0`)
	p.step(20*ms, answers("x", 1, table.New()), "answer lookup 7 at 0, 12ms old")
	p.step(30*ms, managerproc.Followed{Namespace: "x", Event: lookup.Reply{LookupReply: &protocol.LookupReply{
		Namespace: "x", Leader: "other", Term: 3, LSN: 1,
		Changes: []table.Change{{LSN: 1, Kind: table.Granted, Range: leasehold.All, Generation: 1, Holder: holder("ann")}},
	}}}, "relay x at 1")
	p.step(30*ms, answers("y", 1, grown())) // no lookup requests y
}

// A standby without a table passes on the leader's refusal.
func TestStandbyPassesOnRefusals(t *testing.T) {
	for kind, want := range map[leasehold.Kind]string{
		leasehold.ErrNotFound: "refuse lookup 7: not found",
		leasehold.ErrInvalid:  "refuse lookup 7: invalid",
	} {
		p := follows(t)
		p.step(10*ms, lookupFrom("x", 7, 0), `follow x at "other": #1 from 0`)
		p.step(20*ms, managerproc.Followed{Namespace: "x", Event: lookup.Refused{Kind: kind}}, want) // waiting lookups get it too
		p.step(30*ms, lookupFrom("x", 7, 0), want)
		p.elects(500*ms, beats(1), "read")
		p.advance(1020*ms, "read", `follow x at "other": #2 from 0`) // the refusal may have ended
		p.step(1030*ms, answers("x", 2, grown()))
		p.step(1040*ms, managerproc.Followed{Namespace: "x", Event: lookup.Refused{Kind: kind}})
		p.step(1050*ms, lookupFrom("x", 7, 0), "answer lookup 7 at 1, 36ms old") // a stale table with its age is better than none
	}
}

func TestRelayLimit(t *testing.T) {
	cfg := processConfig()
	cfg.MaxRelays = 2
	p := standbyWith(t, cfg)
	p.elects(0, beats(0))
	p.step(10*ms, lookupFrom("a", 1, 0), `follow a at "other": #1 from 0`)
	p.step(10*ms, lookupFrom("b", 1, 0), `follow b at "other": #1 from 0`)
	p.step(10*ms, lookupFrom("c", 1, 0), `redirect lookup 1 to "other" in 3`)
	p.step(10*ms, lookupFrom("", 1, 0)) // no namespace
}

func TestStandbyClosesIdleRelays(t *testing.T) {
	p := follows(t)
	p.step(10*ms, lookupFrom("x", 7, 0), `follow x at "other": #1 from 0`)
	p.step(20*ms, answers("x", 1, grown()), "answer lookup 7 at 1, 12ms old")
	for now := second; now <= 60*second; now = now.Add(500 * time.Millisecond) {
		p.machine.Step(now, managerproc.Election{Event: beats(uint64(now / (500 * ms)))})
	}
	if p.machine.Followed("x") == nil {
		t.Error("a relay with a request within a minute was closed")
	}
	p.machine.Advance(60100 * ms)
	if p.machine.Followed("x") != nil {
		t.Error("an idle relay was not closed")
	}
}

// After a sleep the age of the table is unknown.
func TestStandbySleeps(t *testing.T) {
	p := follows(t)
	p.step(10*ms, lookupFrom("x", 7, 0), `follow x at "other": #1 from 0`)
	p.step(20*ms, answers("x", 1, grown()), "answer lookup 7 at 1, 12ms old")
	p.step(100*ms, managerproc.Slept{}, "read", `follow x at "other": #2 from 1`)
	p.step(110*ms, lookupFrom("x", 7, 1))
	p.step(115*ms, answers("x", 1, grown())) // to a request from before
	p.step(120*ms, answers("x", 2, grown()), "answer lookup 7 at 1, 24ms old")
}

// A standby that takes over answers from its own table, as soon as it is loaded.
func TestStandbyTakesOver(t *testing.T) {
	p := follows(t)
	p.step(10*ms, lookupFrom("x", 7, 0), `follow x at "other": #1 from 0`)
	p.step(20*ms, answers("x", 1, grown()), "answer lookup 7 at 1, 12ms old")
	p.elects(30*ms, byrecord.Seen{Record: storage.Record{Version: 5, Term: 3, Leader: "other", Session: leasehold.Session{2}, Beat: 9, Resigned: true}}, "swap for term 4")
	p.elects(40*ms, byrecord.Swapped{Outcome: storage.Done, Version: 6}, "read catalog in 4", "lead in 4")
	if p.machine.Followed("x") != nil {
		t.Error("the leader still follows")
	}
	p.step(50*ms, lookupFrom("x", 7, 1), `redirect lookup 7 to "" in 4`)
	p.step(50*ms, answers("x", 1, grown()))
	p.step(60*ms, managerproc.Catalogued{Term: 4, Catalog: &storage.Catalog{Version: 1, Term: 4, Namespaces: []storage.Namespace{entry("x")}}}, "load x in 4")
	p.loads(70*ms, "x", 4, &storage.State{Term: 4, Table: grown()}, "serve x in 4")
	p.step(80*ms, lookupFrom("x", 7, 1), "x in 4: answer lookup 7 at 1")
}

// A relay's wake time is honoured.
func TestStandbyPolls(t *testing.T) {
	p := follows(t)
	p.step(10*ms, lookupFrom("x", 7, 0), `follow x at "other": #1 from 0`)
	p.step(20*ms, answers("x", 1, grown()), "answer lookup 7 at 1, 12ms old")
	if p.wake > 1010*ms {
		t.Errorf("wake time %v, but the next poll is within 1 s", p.wake)
	}
	p.elects(500*ms, beats(1), "read")
	var polled mono.Instant
	for now := p.wake; now <= 1010*ms && polled == 0; now = p.wake {
		actions, wake := p.machine.Advance(now)
		p.wake = wake
		for _, a := range actions {
			if f, ok := a.(managerproc.Follow); ok && f.Request.LSN == 1 {
				polled = now
			}
		}
	}
	if polled < 800*ms {
		t.Errorf("it polled at %v, want between 0.8 and 1.01 s", polled)
	}
}
