package relay_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
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

// Every relay here asks the leader once a second, stretches ages by 1.2, and
// keeps at most two lookups waiting.
const (
	second = mono.Instant(time.Second)
	ms     = mono.Instant(time.Millisecond)
)

var (
	ann = &table.Holder{Owner: "ann", Session: leasehold.Session{1}, Addr: "a", Weight: 1}
	bob = &table.Holder{Owner: "bob", Session: leasehold.Session{2}, Addr: "b", Weight: 1}
)

// story is the history of the leader's table: one half, the other half, and
// the first one again, which then moves.
var story = []table.Change{
	{LSN: 1, Kind: table.Granted, Range: leasehold.Range{Limit: 100}, Generation: 1, Holder: ann},
	{LSN: 2, Kind: table.Granted, Range: leasehold.Range{Start: 100}, Generation: 2, Holder: ann},
	{LSN: 3, Kind: table.Vacated, Range: leasehold.Range{Limit: 100}, Generation: 1, Holder: ann},
	{LSN: 4, Kind: table.Granted, Range: leasehold.Range{Limit: 100}, Generation: 3, Holder: ann},
	{LSN: 5, Kind: table.Moved, Range: leasehold.Range{Limit: 100}, Generation: 4, Holder: bob, From: ann},
}

// after returns the table once the first n changes have happened.
func after(n int) *table.Table {
	t := table.New()
	for i := range story[:n] {
		if err := t.Apply(&story[i]); err != nil {
			panic(err)
		}
	}
	return t
}

// A standby is a relay for which the test plays the leader and the lookups.
type standby struct {
	t       *testing.T
	machine *relay.Machine
	seq     protocol.Seq // of its newest question to the leader
}

func config() relay.Config {
	return relay.Config{Namespace: "n", Self: "me", Limits: protocol.DefaultLimits, Drift: 1.2, Waiting: 2, Rand: rand.New(rand.NewPCG(1, 2))}
}

// newStandby returns a relay that has asked for the first time, at 0.
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

// standbyAt returns one that has the table after n changes, as of 0.
func standbyAt(t *testing.T, n int) *standby {
	t.Helper()
	s := newStandby(t)
	s.hear(0, s.snapshot(n))
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

// asks lets a lookup ask.
func (s *standby) asks(now mono.Instant, id uint64, lsn leasehold.LSN, want ...string) {
	s.t.Helper()
	s.step(now, relay.Ask{LookupRequest: &protocol.LookupRequest{Namespace: "n", Lookup: id, Seq: 9, LSN: lsn}}, want...)
}

// hear lets the leader speak.
func (s *standby) hear(now mono.Instant, r *protocol.LookupReply, want ...string) {
	s.t.Helper()
	s.step(now, relay.Upstream{Event: lookup.Reply{LookupReply: r}}, want...)
}

// snapshot is the leader's answer with the whole table after n changes.
func (s *standby) snapshot(n int) *protocol.LookupReply {
	return &protocol.LookupReply{Namespace: "n", Leader: "boss", Term: 3, Echo: s.seq, LSN: leasehold.LSN(n), Snapshot: after(n)}
}

// current is the leader's answer that nothing has changed since.
func (s *standby) current(n int) *protocol.LookupReply {
	return &protocol.LookupReply{Namespace: "n", Leader: "boss", Term: 3, Echo: s.seq, LSN: leasehold.LSN(n)}
}

// news is the leader speaking unasked of the changes after from.
func (s *standby) news(from, to int) *protocol.LookupReply {
	return &protocol.LookupReply{
		Namespace: "n", Leader: "boss", Term: 3, LSN: leasehold.LSN(to), From: leasehold.LSN(from), Changes: story[from:to],
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
		s.checkSays(a.Reply)
		return fmt.Sprintf("answer %d: #%d, %s", a.Lookup, a.Reply.Echo, says(a.Reply))
	case relay.Broadcast:
		s.checkSays(a.Reply)
		if a.Reply.Echo != 0 || a.Reply.Age != 0 {
			s.t.Fatalf("it tells everyone %+v", a.Reply)
		}
		return "tell all: " + says(a.Reply)
	case relay.Turned:
		return fmt.Sprintf("turn %d away", a.Lookup)
	case relay.Note:
		return ""
	}
	return fmt.Sprintf("%T", a)
}

// checkSays: a relay speaks in its own name, of the leader's term, and what it
// says is well formed.
func (s *standby) checkSays(r *protocol.LookupReply) {
	s.t.Helper()
	if err := r.Validate(protocol.DefaultLimits); err != nil || r.Leader != "me" || r.Term != 3 || r.Namespace != "n" {
		s.t.Fatalf("it says %+v: %v", r, err)
	}
}

func says(r *protocol.LookupReply) string {
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

// Before the leader has answered a relay knows nothing, not even that the
// table is empty.
func TestWaitsUntilItKnows(t *testing.T) {
	s := newStandby(t)
	s.asks(10*ms, 7, 0)
	if s.machine.Table() != nil {
		t.Error("it has a table")
	}
	s.hear(100*ms, s.current(0), "answer 7: #9, current at 0, 120ms old")
	s.advance(200 * ms) // once
}

// An answer that is not the newest question's brings a table, but does not
// tell how old it is.
func TestLateAnswerDoesNotTellTheAge(t *testing.T) {
	s := newStandby(t)
	first := s.snapshot(1)
	s.advance(500*ms, "ask from 0")
	s.hear(510*ms, first)
	s.asks(520*ms, 7, 0)
	s.hear(530*ms, s.current(1), "answer 7: #9, table at 1, 36ms old")
}

// The age counts from when the question was sent, whenever the answer comes,
// and on the fastest clock.
func TestAnswersWithStretchedAge(t *testing.T) {
	s := newStandby(t)
	s.hear(300*ms, s.snapshot(2))
	s.asks(300*ms, 7, 2, "answer 7: #9, current at 2, 360ms old")
	s.asks(500*ms, 7, 1, "answer 7: #9, table at 2, 600ms old")
}

// What the leader itself does not know, a relay knows no better.
func TestAddsTheLeadersAge(t *testing.T) {
	s := newStandby(t)
	r := s.snapshot(2)
	r.Age = 2 * time.Second
	s.hear(0, r)
	s.asks(500*ms, 7, 2, "answer 7: #9, current at 2, 3s old")
}

// A relay that has lost the leader goes on answering, and says so.
func TestAgesInTheOpen(t *testing.T) {
	s := standbyAt(t, 2)
	for now := second; now <= 50*second; now += second {
		s.machine.Advance(now) // it asks, and nobody answers
	}
	s.asks(50*second, 7, 2, "answer 7: #9, current at 2, 1m0s old")
}

func TestAfterSleepAnswersNothing(t *testing.T) {
	s := standbyAt(t, 2)
	before := s.current(2)
	s.step(100*ms, relay.Upstream{Event: lookup.Slept{}}, "ask from 2")
	s.asks(110*ms, 7, 2)
	s.hear(120*ms, before) // to a question from before it slept
	s.hear(200*ms, s.current(2), "answer 7: #9, current at 2, 120ms old")
}

// A lookup that knows more than we do has heard a leader that we have not: it
// waits until we have.
func TestLookupAheadWaits(t *testing.T) {
	s := standbyAt(t, 2)
	s.asks(100*ms, 7, 4)
	s.hear(200*ms, s.news(2, 3), "tell all: changes 2 to 3")
	s.hear(300*ms, s.news(3, 4), "tell all: changes 3 to 4", "answer 7: #9, current at 4, 360ms old")
}

// The newest question of a lookup counts, and so many may wait.
func TestWaitingIsBounded(t *testing.T) {
	s := newStandby(t)
	s.asks(10*ms, 7, 0)
	s.asks(20*ms, 8, 0)
	s.asks(30*ms, 9, 0, "turn 9 away")
	s.step(40*ms, relay.Ask{LookupRequest: &protocol.LookupRequest{Namespace: "n", Lookup: 7, Seq: 10}})
	s.hear(100*ms, s.current(0), "answer 7: #10, current at 0, 120ms old", "answer 8: #9, current at 0, 120ms old")
	s.asks(110*ms, 9, 0, "answer 9: #9, current at 0, 132ms old")
}

// What changes is passed on as it is heard, and can be asked for later; of a
// table that was taken over as a whole only that there is one.
func TestPassesOnNews(t *testing.T) {
	s := standbyAt(t, 1)
	s.hear(100*ms, s.news(1, 3), "tell all: changes 1 to 3")
	s.hear(200*ms, s.news(2, 4), "tell all: changes 3 to 4") // it knew one of them
	s.asks(300*ms, 7, 2, "answer 7: #9, changes 2 to 4, 360ms old")
	s.asks(300*ms, 7, 0, "answer 7: #9, table at 4, 360ms old")

	s = standbyAt(t, 1)
	s.advance(second, "ask from 1")
	s.hear(1100*ms, s.snapshot(4), "tell all: current at 4")
	s.asks(1200*ms, 7, 1, "answer 7: #9, table at 4, 240ms old") // how it came about is not known
}

// TestPassesOnACrossing: lookups that are at the end of a gap do not need the table, if they handle crossings.
func TestPassesOnACrossing(t *testing.T) {
	s := standbyAt(t, 4)
	before := after(4)
	news := s.current(1000)
	news.Echo, news.Crossing = 0, before.Crossing(before.Rebased(1000, false, func(leasehold.Range, table.Entry) bool { return true }))
	s.hear(100*ms, news, "tell all: crossing 4 to 1000")
	ask := &protocol.LookupRequest{Namespace: "n", Lookup: 7, Seq: 9, LSN: 4, Crosses: true}
	s.step(200*ms, relay.Ask{LookupRequest: ask}, "answer 7: #9, crossing 4 to 1000, 240ms old")
	s.asks(200*ms, 7, 4, "answer 7: #9, table at 1000, 240ms old")
	ask.LSN = 3
	s.step(200*ms, relay.Ask{LookupRequest: ask}, "answer 7: #9, table at 1000, 240ms old")
}

// A gap makes it ask, and nobody is told of what it does not understand.
func TestGapIsAskedFor(t *testing.T) {
	s := standbyAt(t, 1)
	s.hear(100*ms, s.news(3, 4), "ask from 1")
	s.hear(200*ms, &protocol.LookupReply{
		Namespace: "n", Leader: "boss", Term: 3, Echo: s.seq, LSN: 4, From: 1, Changes: story[1:4],
	}, "tell all: changes 1 to 4")
}

// Questions that are not for it, or make no sense, are nobody's.
func TestStrangeQuestions(t *testing.T) {
	s := standbyAt(t, 1)
	s.step(10*ms, relay.Ask{LookupRequest: &protocol.LookupRequest{Namespace: "other", Lookup: 7, Seq: 1}})
	s.step(10*ms, relay.Ask{LookupRequest: &protocol.LookupRequest{Namespace: "n", Lookup: 7}})
}

// A relay refuses to go back to an earlier term, as any lookup does.
func TestOldLeaderIsNotHeard(t *testing.T) {
	s := standbyAt(t, 1)
	old := s.news(1, 2)
	old.Term = 2
	s.hear(100*ms, old)
	if lsn := s.machine.Table().LSN(); lsn != 1 {
		t.Errorf("it is at lsn %d", lsn)
	}
}

// A range that has moved is passed on as that: whoever follows the relay hears
// of no loss, by changes or by the table.
func TestPassesMovesOn(t *testing.T) {
	s := standbyAt(t, 4)
	s.hear(100*ms, s.news(4, 5), "tell all: changes 4 to 5")
	if _, e := s.machine.Table().At(0); e.Holder != bob || e.Generation != 4 || e.Lost != 3 {
		t.Errorf("its table has %+v", e)
	}
	s.asks(100*ms, 7, 4, "answer 7: #9, changes 4 to 5, 120ms old")
}
