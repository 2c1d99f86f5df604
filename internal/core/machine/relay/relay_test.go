package relay_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/relay"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// Relays in these tests poll the leader once a second, stretch ages by 1.2, and queue at most two
// requests.
const (
	second = mono.Instant(time.Second)
	ms     = mono.Instant(time.Millisecond)
)

var (
	ann = &table.Holder{Owner: "ann", Session: leasehold.Session{1}, Addr: "a", Weight: 1}
	bob = &table.Holder{Owner: "bob", Session: leasehold.Session{2}, Addr: "b", Weight: 1}
)

// history are the changes of the leader's table: both halves are granted, and the first one is vacated,
// granted again and moved.
var history = []table.Change{
	{LSN: 1, Kind: table.Granted, Range: leasehold.Range{Limit: 100}, Generation: 1, Holder: ann},
	{LSN: 2, Kind: table.Granted, Range: leasehold.Range{Start: 100}, Generation: 2, Holder: ann},
	{LSN: 3, Kind: table.Vacated, Range: leasehold.Range{Limit: 100}, Generation: 1, Holder: ann},
	{LSN: 4, Kind: table.Granted, Range: leasehold.Range{Limit: 100}, Generation: 3, Holder: ann},
	{LSN: 5, Kind: table.Moved, Range: leasehold.Range{Limit: 100}, Generation: 4, Holder: bob, From: ann},
}

// after returns the table after the first n changes.
func after(n int) *table.Table {
	t := table.New()
	for i := range history[:n] {
		if err := t.Apply(&history[i]); err != nil {
			panic(err)
		}
	}
	return t
}

// A standby is a relay; the test takes the roles of the leader and the lookups.
type standby struct {
	t       *testing.T
	machine *relay.Machine
	seq     protocol.Seq // of its newest request to the leader
}

func config() relay.Config {
	return relay.Config{Namespace: "n", Self: "me", Limits: protocol.DefaultLimits, Drift: 1.2, Waiting: 2, Rand: rand.New(rand.NewPCG(1, 2))}
}

// newStandby returns a relay that has sent its first request, at 0.
func newStandby(t *testing.T) *standby {
	t.Helper()
	m, err := relay.New(0, config())
	if err != nil {
		t.Fatal(err)
	}
	s := &standby{t: t, machine: m}
	s.advance(0, "ask from 0")
	return s
}

// standbyAt returns a relay that has the table after n changes, as of 0.
func standbyAt(t *testing.T, n int) *standby {
	t.Helper()
	s := newStandby(t)
	s.receive(0, s.snapshot(n))
	return s
}

func (s *standby) step(now mono.Instant, e relay.Event, want ...string) {
	s.t.Helper()
	actions, _ := s.machine.Step(now, e)
	s.compare(now, fmt.Sprintf("%T", e), actions, want)
}

func (s *standby) advance(now mono.Instant, want ...string) {
	s.t.Helper()
	actions, _ := s.machine.Advance(now)
	s.compare(now, "time", actions, want)
}

// request delivers a request of a lookup.
func (s *standby) request(now mono.Instant, id uint64, lsn leasehold.LSN, want ...string) {
	s.t.Helper()
	s.step(now, relay.Request{LookupRequest: &protocol.LookupRequest{Namespace: "n", Lookup: id, Seq: 9, LSN: lsn}}, want...)
}

// receive delivers a message of the leader.
func (s *standby) receive(now mono.Instant, r *protocol.LookupReply, want ...string) {
	s.t.Helper()
	s.step(now, relay.Upstream{Event: lookup.Reply{LookupReply: r}}, want...)
}

// snapshot returns the leader's reply with the table after n changes.
func (s *standby) snapshot(n int) *protocol.LookupReply {
	return &protocol.LookupReply{Namespace: "n", Leader: "boss", Term: 3, Echo: s.seq, LSN: leasehold.LSN(n), Snapshot: after(n)}
}

// current returns the leader's reply without changes.
func (s *standby) current(n int) *protocol.LookupReply {
	return &protocol.LookupReply{Namespace: "n", Leader: "boss", Term: 3, Echo: s.seq, LSN: leasehold.LSN(n)}
}

// changes returns an unsolicited message of the leader with the changes after from.
func (s *standby) changes(from, to int) *protocol.LookupReply {
	return &protocol.LookupReply{
		Namespace: "n", Leader: "boss", Term: 3, LSN: leasehold.LSN(to), From: leasehold.LSN(from), Changes: history[from:to],
	}
}

func (s *standby) compare(now mono.Instant, what string, actions []relay.Action, want []string) {
	s.t.Helper()
	var got []string
	for _, a := range actions {
		if text := s.describe(a); text != "" {
			got = append(got, text)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Fatalf("at %v, %s (-want +got):\n%s", now, what, diff)
	}
}

func (s *standby) describe(a relay.Action) string {
	switch a := a.(type) {
	case relay.Send:
		s.seq = a.Request.Seq
		return fmt.Sprintf("ask from %d", a.Request.LSN)
	case relay.Answer:
		s.checkReply(a.Reply)
		return fmt.Sprintf("answer %d: #%d, %s", a.Lookup, a.Reply.Echo, content(a.Reply))
	case relay.Broadcast:
		s.checkReply(a.Reply)
		if a.Reply.Echo != 0 || a.Reply.Age != 0 {
			s.t.Fatalf("broadcast of %+v, want no echo and no age", a.Reply)
		}
		return "broadcast: " + content(a.Reply)
	case relay.Rejected:
		return fmt.Sprintf("reject %d", a.Lookup)
	case relay.Note:
		return ""
	}
	return fmt.Sprintf("%T", a)
}

// checkReply checks that a reply is valid, and has the relay's ID and the leader's term.
func (s *standby) checkReply(r *protocol.LookupReply) {
	s.t.Helper()
	if err := r.Validate(protocol.DefaultLimits); err != nil || r.Leader != "me" || r.Term != 3 || r.Namespace != "n" {
		s.t.Fatalf("reply %+v: %v", r, err)
	}
}

func content(r *protocol.LookupReply) string {
	text := fmt.Sprintf("current at %d", r.LSN)
	switch {
	case r.Snapshot != nil:
		text = fmt.Sprintf("table at %d", r.LSN)
	case len(r.Changes) > 0:
		text = fmt.Sprintf("changes %d to %d", r.From, r.LSN)
	case r.Crossing != nil:
		text = fmt.Sprintf("crossing %d to %d", r.Crossing.Gap.After, r.LSN)
	}
	if r.Echo != 0 {
		text += fmt.Sprintf(", %v old", r.Age)
	}
	return text
}

func TestConfigRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*relay.Config){
		"no namespace":  func(c *relay.Config) { c.Namespace = "" },
		"no randomness": func(c *relay.Config) { c.Rand = nil },
	} {
		cfg := config()
		spoil(&cfg)
		if _, err := relay.New(0, cfg); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("%s: %v, want %v", name, err, leasehold.ErrInvalid)
		}
	}
}

// Requests wait for the first reply of the leader: until then the relay does not even know whether the table is
// empty.
func TestRequestsWaitForATable(t *testing.T) {
	s := newStandby(t)
	s.request(10*ms, 7, 0)
	if s.machine.Table() != nil {
		t.Error("the relay has a table before the first reply")
	}
	s.receive(100*ms, s.current(0), "answer 7: #9, current at 0, 120ms old")
	s.advance(200 * ms) // no second answer
}

// A reply to an earlier request contains a table, but its age is unknown.
func TestAgeUnknownAfterALateReply(t *testing.T) {
	s := newStandby(t)
	first := s.snapshot(1)
	s.advance(500*ms, "ask from 0")
	s.receive(510*ms, first)
	s.request(520*ms, 7, 0)
	s.receive(530*ms, s.current(1), "answer 7: #9, table at 1, 36ms old")
}

// The age counts from the sending of the request, not from the reply, and is stretched by the drift bound.
func TestAnswersWithStretchedAge(t *testing.T) {
	s := newStandby(t)
	s.receive(300*ms, s.snapshot(2))
	s.request(300*ms, 7, 2, "answer 7: #9, current at 2, 360ms old")
	s.request(500*ms, 7, 1, "answer 7: #9, table at 2, 600ms old")
}

// The age in the leader's reply is added.
func TestAddsTheLeadersAge(t *testing.T) {
	s := newStandby(t)
	r := s.snapshot(2)
	r.Age = 2 * time.Second
	s.receive(0, r)
	s.request(500*ms, 7, 2, "answer 7: #9, current at 2, 3s old")
}

// A relay without contact to the leader replies with a growing age.
func TestAgeGrowsWithoutTheLeader(t *testing.T) {
	s := standbyAt(t, 2)
	for now := second; now <= 50*second; now += second {
		s.machine.Advance(now) // requests without a reply
	}
	s.request(50*second, 7, 2, "answer 7: #9, current at 2, 1m0s old")
}

func TestAfterSleepAnswersNothing(t *testing.T) {
	s := standbyAt(t, 2)
	before := s.current(2)
	s.step(100*ms, relay.Upstream{Event: lookup.Slept{}}, "ask from 2")
	s.request(110*ms, 7, 2)
	s.receive(120*ms, before) // to a request from before the sleep
	s.receive(200*ms, s.current(2), "answer 7: #9, current at 2, 120ms old")
}

// A lookup with a newer table than the relay's waits until the relay has that table, too.
func TestLookupAheadWaits(t *testing.T) {
	s := standbyAt(t, 2)
	s.request(100*ms, 7, 4)
	s.receive(200*ms, s.changes(2, 3), "broadcast: changes 2 to 3")
	s.receive(300*ms, s.changes(3, 4), "broadcast: changes 3 to 4", "answer 7: #9, current at 4, 360ms old")
}

// Only the newest request of a lookup waits, and the number of waiting requests is limited.
func TestWaitingIsBounded(t *testing.T) {
	s := newStandby(t)
	s.request(10*ms, 7, 0)
	s.request(20*ms, 8, 0)
	s.request(30*ms, 9, 0, "reject 9")
	s.step(40*ms, relay.Request{LookupRequest: &protocol.LookupRequest{Namespace: "n", Lookup: 7, Seq: 10}})
	s.receive(100*ms, s.current(0), "answer 7: #10, current at 0, 120ms old", "answer 8: #9, current at 0, 120ms old")
	s.request(110*ms, 9, 0, "answer 9: #9, current at 0, 132ms old")
}

// Changes are forwarded when they arrive, and kept for later requests. After a snapshot only the LSN is
// broadcast.
func TestForwardsChanges(t *testing.T) {
	s := standbyAt(t, 1)
	s.receive(100*ms, s.changes(1, 3), "broadcast: changes 1 to 3")
	s.receive(200*ms, s.changes(2, 4), "broadcast: changes 3 to 4") // one of them was applied before
	s.request(300*ms, 7, 2, "answer 7: #9, changes 2 to 4, 360ms old")
	s.request(300*ms, 7, 0, "answer 7: #9, table at 4, 360ms old")

	s = standbyAt(t, 1)
	s.advance(second, "ask from 1")
	s.receive(1100*ms, s.snapshot(4), "broadcast: current at 4")
	s.request(1200*ms, 7, 1, "answer 7: #9, table at 4, 240ms old") // the changes are not known
}

// Lookups at the end of a gap do not need the table if they support crossings.
func TestForwardsACrossing(t *testing.T) {
	s := standbyAt(t, 4)
	before := after(4)
	reply := s.current(1000)
	reply.Echo, reply.Crossing = 0, before.Crossing(before.Rebased(1000, false, func(leasehold.Range, table.Entry) bool { return true }))
	s.receive(100*ms, reply, "broadcast: crossing 4 to 1000")
	request := &protocol.LookupRequest{Namespace: "n", Lookup: 7, Seq: 9, LSN: 4, Crosses: true}
	s.step(200*ms, relay.Request{LookupRequest: request}, "answer 7: #9, crossing 4 to 1000, 240ms old")
	s.request(200*ms, 7, 4, "answer 7: #9, table at 1000, 240ms old")
	request.LSN = 3
	s.step(200*ms, relay.Request{LookupRequest: request}, "answer 7: #9, table at 1000, 240ms old")
}

// After a gap the relay requests the missing changes, and broadcasts nothing before it has them.
func TestGapIsRequested(t *testing.T) {
	s := standbyAt(t, 1)
	s.receive(100*ms, s.changes(3, 4), "ask from 1")
	s.receive(200*ms, &protocol.LookupReply{
		Namespace: "n", Leader: "boss", Term: 3, Echo: s.seq, LSN: 4, From: 1, Changes: history[1:4],
	}, "broadcast: changes 1 to 4")
}

// Invalid requests, and those for another namespace, are dropped.
func TestInvalidRequestsAreDropped(t *testing.T) {
	s := standbyAt(t, 1)
	s.step(10*ms, relay.Request{LookupRequest: &protocol.LookupRequest{Namespace: "other", Lookup: 7, Seq: 1}})
	s.step(10*ms, relay.Request{LookupRequest: &protocol.LookupRequest{Namespace: "n", Lookup: 7}})
}

// A relay drops messages of an earlier term, as any lookup does.
func TestStaleTermIsDropped(t *testing.T) {
	s := standbyAt(t, 1)
	old := s.changes(1, 2)
	old.Term = 2
	s.receive(100*ms, old)
	if lsn := s.machine.Table().LSN(); lsn != 1 {
		t.Errorf("the table is at LSN %d, want 1", lsn)
	}
}

// A move is forwarded as a move: lookups of the relay report no loss, neither by changes nor by a
// snapshot.
func TestForwardsMoves(t *testing.T) {
	s := standbyAt(t, 4)
	s.receive(100*ms, s.changes(4, 5), "broadcast: changes 4 to 5")
	if _, e := s.machine.Table().At(0); e.Holder != bob || e.Generation != 4 || e.Lost != 3 {
		t.Errorf("entry %+v, want holder bob, generation 4, lost at LSN 3", e)
	}
	s.request(100*ms, 7, 4, "answer 7: #9, changes 4 to 5, 120ms old")
}

// TestLeaderRefuses: requests that wait for the first table are rejected if the leader refuses, and are not answered
// later. With a table they wait on.
func TestLeaderRefuses(t *testing.T) {
	refused := relay.Upstream{Event: lookup.Refused{From: "boss", Kind: leasehold.ErrNotFound}}
	s := newStandby(t)
	s.request(10*ms, 7, 0)
	s.request(20*ms, 8, 0)
	s.step(100*ms, relay.Upstream{Event: lookup.Failed{From: "boss"}})
	actions, _ := s.machine.Step(110*ms, refused)
	if !slices.ContainsFunc(actions, func(a relay.Action) bool { n, ok := a.(relay.Note); return ok && n.What == lookup.NoteRefused }) {
		t.Errorf("no note of the refusal: %v", actions)
	}
	s.compare(110*ms, "refusal", actions, []string{"reject 7", "reject 8"})
	s.step(120*ms, refused)
	s.receive(200*ms, s.current(0))

	s = standbyAt(t, 2)
	s.request(100*ms, 7, 4)
	s.step(110*ms, refused)
	s.receive(200*ms, s.changes(2, 4), "broadcast: changes 2 to 4", "answer 7: #9, current at 4, 240ms old")
}

// TestPolls: any interval of requests to the leader is possible.
func TestPolls(t *testing.T) {
	for _, poll := range []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 20 * time.Second, time.Hour} {
		cfg := config()
		cfg.Poll = poll
		if _, err := relay.New(0, cfg); err != nil {
			t.Errorf("with a poll each %v: %v", poll, err)
		}
	}
}

// TestDefaults: at most 4,096 requests wait.
func TestDefaults(t *testing.T) {
	m, err := relay.New(0, relay.Config{Namespace: "n", Self: "me", Limits: protocol.DefaultLimits, Drift: 1.2, Rand: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	s := &standby{t: t, machine: m}
	s.advance(0, "ask from 0")
	for i := range uint64(4096) {
		s.request(10*ms, i+1, 0)
	}
	s.request(10*ms, 9999, 0, "reject 9999")
}
