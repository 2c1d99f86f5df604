package lookup_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// Callers in these tests poll every 5 s, retry after half a second, and lose contact after
// 30 s.
const (
	second = mono.Instant(time.Second)
	ms     = mono.Instant(time.Millisecond)
)

// changeLog are the changes of the leader's table: of the first hundred keys and of the rest.
var changeLog = []table.Change{
	{LSN: 1, Kind: table.Granted, Range: leasehold.Range{Limit: 100}, Generation: 1, Holder: fuzzHolder(0)},
	{LSN: 2, Kind: table.Granted, Range: leasehold.Range{Start: 100}, Generation: 2, Holder: fuzzHolder(1)},
	{LSN: 3, Kind: table.Vacated, Range: leasehold.Range{Limit: 50}, Generation: 1, Holder: fuzzHolder(0), Cause: leasehold.CauseReleased},
	{LSN: 4, Kind: table.Granted, Range: leasehold.Range{Limit: 50}, Generation: 3, Holder: fuzzHolder(1)},
	{LSN: 5, Kind: table.Vacated, Range: leasehold.Range{Start: 100}, Generation: 2, Holder: fuzzHolder(1), Cause: leasehold.CauseExpired},
	{LSN: 6, Kind: table.Granted, Range: leasehold.Range{Start: 100}, Generation: 4, Holder: fuzzHolder(2)},
	{LSN: 7, Kind: table.Moved, Range: leasehold.Range{Limit: 50}, Generation: 5, Holder: fuzzHolder(2), From: fuzzHolder(1)},
	{LSN: 8, Kind: table.Moved, Range: leasehold.Range{Start: 100, Limit: 200}, Generation: 6, Holder: fuzzHolder(0), From: fuzzHolder(2)},
	{LSN: 9, Kind: table.Vacated, Range: leasehold.Range{Start: 100, Limit: 200}, Generation: 6, Holder: fuzzHolder(0), Cause: leasehold.CauseExpired},
}

// after returns the table after the first n changes.
func after(t *testing.T, n int) *table.Table {
	t.Helper()
	tab := table.New()
	for i := range changeLog[:n] {
		if err := tab.Apply(&changeLog[i]); err != nil {
			t.Fatal(err)
		}
	}
	return tab
}

// A caller is a lookup; the test takes the role of the managers.
type caller struct {
	t       *testing.T
	machine *lookup.Machine
	wake    mono.Instant
	seq     protocol.Seq // of its newest request
}

func callerConfig() lookup.Config {
	return lookup.Config{Namespace: "n", ID: 7, Rand: rand.New(rand.NewPCG(1, 2))}
}

// newCaller returns a lookup that has sent its first request, at 0.
func newCaller(t *testing.T) *caller {
	t.Helper()
	return start(t, callerConfig())
}

func start(t *testing.T, cfg lookup.Config) *caller {
	t.Helper()
	m, err := lookup.New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{t: t, machine: m}
	c.advance(0, "ask all from 0")
	return c
}

// callerAt returns a lookup that has the table after n changes, as of 0.
func callerAt(t *testing.T, n int) *caller {
	t.Helper()
	return startAt(t, callerConfig(), n)
}

// conservativeAt is callerAt with conservative recovery.
func conservativeAt(t *testing.T, n int) *caller {
	t.Helper()
	cfg := callerConfig()
	cfg.ConservativeRecovery = true
	return startAt(t, cfg, n)
}

func startAt(t *testing.T, cfg lookup.Config, n int) *caller {
	t.Helper()
	c := start(t, cfg)
	c.receive(0, c.snapshot(n), fmt.Sprintf("publish %d", n))
	return c
}

func (c *caller) receive(now mono.Instant, r *protocol.LookupReply, want ...string) {
	c.t.Helper()
	actions, wake := c.machine.Step(now, lookup.Reply{LookupReply: r})
	c.compare(now, "a reply", actions, wake, want)
}

func (c *caller) step(now mono.Instant, e lookup.Event, want ...string) {
	c.t.Helper()
	actions, wake := c.machine.Step(now, e)
	c.compare(now, fmt.Sprintf("%T", e), actions, wake, want)
}

func (c *caller) advance(now mono.Instant, want ...string) {
	c.t.Helper()
	actions, wake := c.machine.Advance(now)
	c.compare(now, "time", actions, wake, want)
}

// untilRequest advances the time to the next request, and returns that time.
func (c *caller) untilRequest(want ...string) mono.Instant {
	c.t.Helper()
	now := c.wake
	c.advance(now, want...)
	return now
}

func (c *caller) compare(now mono.Instant, what string, actions []lookup.Action, wake mono.Instant, want []string) {
	c.t.Helper()
	c.wake = wake
	var got []string
	for _, a := range actions {
		got = append(got, c.describe(a))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Fatalf("at %v, %s (-want +got):\n%s", now, what, diff)
	}
}

// describe formats an action for comparison.
func (c *caller) describe(a lookup.Action) string {
	switch a := a.(type) {
	case lookup.Send:
		c.seq = a.Request.Seq
		to := string(a.To)
		if to == "" {
			to = "all"
		}
		return fmt.Sprintf("ask %s from %d", to, a.Request.LSN)
	case lookup.Publish:
		return fmt.Sprintf("publish %d", a.Table.LSN())
	case lookup.Losses:
		s := "losses:"
		for _, l := range a.Losses {
			s += fmt.Sprintf(" %q %d-%d@%d %v %d", l.Owner, l.Range.Start, l.Range.Limit, l.Generation, l.Cause, l.LSN)
		}
		return s
	case lookup.Contact:
		if a.Lost {
			return fmt.Sprintf("lose contact after %v", a.Age)
		}
		return fmt.Sprintf("restore contact after %v", a.Age)
	case lookup.Note:
		return a.What.String()
	}
	return fmt.Sprintf("%T", a)
}

// reply returns a reply to the newest request, by leader m in term 1.
func (c *caller) reply(lsn leasehold.LSN) *protocol.LookupReply {
	return &protocol.LookupReply{Namespace: "n", Leader: "m", Term: 1, Echo: c.seq, LSN: lsn}
}

func (c *caller) snapshot(n int) *protocol.LookupReply {
	r := c.reply(leasehold.LSN(n))
	r.Snapshot = after(c.t, n)
	return r
}

// changes returns a reply with the changes from one LSN to another.
func (c *caller) changes(from, to int) *protocol.LookupReply {
	r := c.reply(leasehold.LSN(to))
	r.From, r.Changes = leasehold.LSN(from), changeLog[from:to]
	return r
}

// unsolicited removes the echo from a reply.
func unsolicited(r *protocol.LookupReply) *protocol.LookupReply {
	r.Echo = 0
	return r
}

func (c *caller) wantTable(n int) {
	c.t.Helper()
	type line struct {
		Range leasehold.Range
		Entry table.Entry
	}
	lines := func(t *table.Table) (out []line) {
		for r, e := range t.All() {
			out = append(out, line{r, e})
		}
		return out
	}
	if diff := cmp.Diff(lines(after(c.t, n)), lines(c.machine.Table())); diff != "" || c.machine.LSN() != leasehold.LSN(n) {
		c.t.Errorf("table at lsn %d, want %d (-want +got):\n%s", c.machine.LSN(), n, diff)
	}
}

func TestCallerConfigRefuses(t *testing.T) {
	const times = ": want retry <= poll and at least three polls in stale"
	for _, c := range []struct {
		name  string
		spoil func(*lookup.Config)
		want  string
	}{
		{"no namespace", func(c *lookup.Config) { c.Namespace = "" }, `namespace: want 1 to 64 characters, have 0 bytes`},
		{"no randomness", func(c *lookup.Config) { c.Rand = nil }, `lookup "n": Rand must be set`},
		{"too few polls", func(c *lookup.Config) { c.Stale = 14 * time.Second }, `lookup "n": retry 500ms, poll 5s and stale 14s` + times},
		{"too long a retry", func(c *lookup.Config) { c.Retry = 6 * time.Second }, `lookup "n": retry 6s, poll 5s and stale 30s` + times},
		{"retries before the first", func(c *lookup.Config) { c.Retry = -1 }, `lookup "n": retry -1ns, poll 5s and stale 30s` + times},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := callerConfig()
			c.spoil(&cfg)
			_, err := lookup.New(0, cfg)
			if err == nil {
				t.Fatal("the configuration is accepted")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" || !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("kind %v (-want +got):\n%s", leasehold.KindOf(err), diff)
			}
		})
	}
}

func TestCallerPolls(t *testing.T) {
	c := callerAt(t, 2)
	at := c.untilRequest("ask m from 2")
	if at < 4375*ms || at > 5*second {
		t.Errorf("next request at %v, want 5 s or up to an eighth less", at)
	}
	c.receive(at+10*ms, c.reply(2))
	if c.wake < at+4375*ms || c.wake > at+5*second {
		t.Errorf("requests at %v and %v, want 5 s or up to an eighth less between them", at, c.wake)
	}
}

// The first table may be empty, and is then not sent.
func TestCallerOfEmptyTable(t *testing.T) {
	c := newCaller(t)
	c.receive(10*ms, c.reply(0), "publish 0")
	c.wantTable(0)
	c.receive(20*ms, unsolicited(c.changes(0, 2)), "publish 2")
	c.wantTable(2)
}

// Without a table changes are ignored.
func TestCallerWithoutTable(t *testing.T) {
	c := newCaller(t)
	c.receive(10*ms, unsolicited(c.changes(0, 2)))
	if c.machine.Table() != nil || c.machine.LSN() != 0 {
		t.Errorf("a table at LSN %d, want none", c.machine.LSN())
	}
	c.receive(20*ms, c.reply(2), "ask m from 0") // a reply without the table is not sufficient
	c.receive(30*ms, c.snapshot(2), "publish 2")
}

func TestCallerFollows(t *testing.T) {
	for _, c := range []struct {
		name  string
		from  int
		reply func(*caller) *protocol.LookupReply
		want  []string
		lsn   int
	}{
		{
			"one change", 2, func(c *caller) *protocol.LookupReply { return unsolicited(c.changes(2, 3)) },
			[]string{"publish 3", `losses: "a" 0-50@1 released 3`},
			3,
		},
		{
			"many changes", 2, func(c *caller) *protocol.LookupReply { return unsolicited(c.changes(2, 6)) },
			[]string{"publish 6", `losses: "a" 0-50@1 released 3 "b" 100-0@2 expired 5`},
			6,
		},
		{
			"changes that lose nothing", 3, func(c *caller) *protocol.LookupReply { return unsolicited(c.changes(3, 4)) },
			[]string{"publish 4"},
			4,
		},
		{
			"moves, which lose nothing", 6, func(c *caller) *protocol.LookupReply { return unsolicited(c.changes(6, 8)) },
			[]string{"publish 8"},
			8,
		},
		{
			"a move, and then a loss at its target", 7, func(c *caller) *protocol.LookupReply { return unsolicited(c.changes(7, 9)) },
			[]string{"publish 9", `losses: "a" 100-200@6 expired 9`},
			9,
		},
		{
			"an overlap", 4, func(c *caller) *protocol.LookupReply { return unsolicited(c.changes(2, 6)) },
			[]string{"overlap", "publish 6", `losses: "b" 100-0@2 expired 5`},
			6,
		},
		{"known changes", 4, func(c *caller) *protocol.LookupReply { return unsolicited(c.changes(2, 4)) }, nil, 4},
		{
			"a gap", 2, func(c *caller) *protocol.LookupReply { return unsolicited(c.changes(4, 6)) },
			[]string{"gap", "ask m from 2"},
			2,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := callerAt(t, c.from)
			m.receive(10*ms, c.reply(m), c.want...)
			m.wantTable(c.lsn)
		})
	}
}

// Missing changes are requested at once or, if a request is outstanding, after its reply, which may be older than
// the gap.
func TestCallerGapWhileAsking(t *testing.T) {
	c := callerAt(t, 2)
	at := c.untilRequest("ask m from 2")
	c.receive(at+1, unsolicited(c.changes(4, 6)), "gap")
	c.receive(at+2, c.changes(2, 6), "publish 6", `losses: "a" 0-50@1 released 3 "b" 100-0@2 expired 5`, "ask m from 6")
	c.wantTable(6)
	c.receive(at+3, c.reply(6)) // no further request
}

// A leader that has not replied to requests, as while a store may have been restored, broadcasts changes. The lookup
// requests the missing ones soon, and not at the end of its backoff.
func TestCallerAsksAfterSilence(t *testing.T) {
	c := callerAt(t, 2)
	c.untilRequest("ask m from 2")
	c.untilRequest("leader silent", "ask all from 2")
	var at mono.Instant
	for range 4 {
		at = c.untilRequest("ask all from 2")
	}
	c.receive(at+1, unsolicited(c.changes(4, 6)), "gap")
	if soon := c.untilRequest("ask m from 2"); soon > at+500*ms {
		t.Errorf("request at %v, the broadcast was at %v", soon, at+1)
	}
}

// A reply with a higher LSN than its changes reach is followed by another request.
func TestCallerIncompleteReply(t *testing.T) {
	c := callerAt(t, 2)
	at := c.untilRequest("ask m from 2")
	c.receive(at+1, c.reply(6), "ask m from 2")
}

func TestCallerMixed(t *testing.T) {
	forged := func(c *caller) *protocol.LookupReply {
		r := unsolicited(c.reply(5))
		r.From = 4
		r.Changes = []table.Change{{LSN: 5, Kind: table.Vacated, Generation: 99, Holder: fuzzHolder(0)}}
		return r
	}
	t.Run("repaired by a newer snapshot", func(t *testing.T) {
		c := callerAt(t, 4)
		c.receive(10*ms, forged(c), "mixed history", "ask m from 0")
		c.wantTable(4)
		c.receive(20*ms, unsolicited(c.changes(4, 5))) // changes are ignored until then
		c.receive(30*ms, c.snapshot(6), "snapshot", "publish 6", `losses: "b" 100-0@2 unknown 5`)
		c.wantTable(6)
		c.untilRequest("ask m from 6")
	})
	t.Run("repaired by a snapshot at the same LSN", func(t *testing.T) {
		c := callerAt(t, 4)
		c.receive(10*ms, forged(c), "mixed history", "ask m from 0")
		c.receive(20*ms, c.snapshot(4))
		c.receive(30*ms, unsolicited(c.changes(4, 5)), "publish 5", `losses: "b" 100-0@2 expired 5`)
	})
	t.Run("not repaired by an older snapshot", func(t *testing.T) {
		c := callerAt(t, 4)
		c.receive(10*ms, forged(c), "mixed history", "ask m from 0")
		c.receive(20*ms, unsolicited(c.snapshot(2)), "old snapshot")
		c.wantTable(4)
		c.receive(30*ms, unsolicited(c.changes(4, 5)))
	})
	t.Run("no request at once after an older snapshot", func(t *testing.T) {
		// The store was restored from an old backup. Another request would return the same snapshot.
		c := callerAt(t, 4)
		c.receive(10*ms, forged(c), "mixed history", "ask m from 0")
		c.receive(20*ms, c.snapshot(2), "old snapshot")
		if again := c.untilRequest("ask m from 0"); again < mono.Instant(time.Second) {
			t.Errorf("next request at %v, want after 1 s", again)
		}
	})
	t.Run("a message is applied as a whole or not at all", func(t *testing.T) {
		c := callerAt(t, 2)
		r := unsolicited(c.reply(4))
		r.From = 2
		r.Changes = []table.Change{changeLog[2], {LSN: 4, Kind: table.Granted, Generation: 9, Holder: fuzzHolder(0)}}
		c.receive(10*ms, r, "mixed history", "ask m from 0")
		c.wantTable(2)
	})
}

func TestCallerSnapshots(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to int
		want     []string
		lsn      int
	}{
		{"newer", 2, 4, []string{"snapshot", "publish 4", `losses: "a" 0-50@1 unknown 3`}, 4},
		{"much newer", 2, 6, []string{"snapshot", "publish 6", `losses: "a" 0-50@1 unknown 3 "b" 100-0@2 unknown 5`}, 6},
		{"newer, no loss", 3, 4, []string{"snapshot", "publish 4"}, 4},
		{"newer, loss of a range that was vacant before", 5, 6, []string{"snapshot", "publish 6"}, 6},
		{"newer, moved ranges", 6, 8, []string{"snapshot", "publish 8"}, 8},
		{"newer, loss and then move of a range", 4, 8, []string{"snapshot", "publish 8", `losses: "b" 100-200@2 unknown 5 "b" 200-0@2 unknown 5`}, 8},
		{"newer, move and then loss of a range", 7, 9, []string{"snapshot", "publish 9", `losses: "c" 100-200@4 unknown 9`}, 9},
		{"the same", 4, 4, []string{"old snapshot"}, 4},
		{"older", 4, 3, []string{"old snapshot"}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := callerAt(t, c.from)
			m.receive(10*ms, unsolicited(m.snapshot(c.to)), c.want...)
			m.wantTable(c.lsn)
		})
	}
}

// crossing returns the crossing of a gap from LSN n to LSN 1000.
func crossing(t *testing.T, n int) *table.Crossing {
	before := after(t, n)
	return before.Crossing(before.Rebased(1000, false, func(r leasehold.Range, _ table.Entry) bool { return r.Start == 0 }))
}

// A lookup whose table is the last one before a gap crosses it, and reports no loss. Any other lookup requests a table.
func TestCallerCrossesAGap(t *testing.T) {
	m := callerAt(t, 4)
	r := m.reply(1000)
	r.Crossing = crossing(t, 4)
	want := after(t, 4).Rebased(1000, false, func(r leasehold.Range, _ table.Entry) bool { return r.Start == 0 })
	m.receive(10*ms, unsolicited(r), "publish 1000")
	var got, wanted []table.Entry
	for _, e := range m.machine.Table().All() {
		got = append(got, e)
	}
	for _, e := range want.All() {
		wanted = append(wanted, e)
	}
	if diff := cmp.Diff(wanted, got); diff != "" || m.machine.Table().Gap() != want.Gap() {
		t.Errorf("table after the gap (-want +got):\n%s", diff)
	}

	m = callerAt(t, 4)
	now := m.untilRequest("ask m from 4")
	r = m.reply(1001)
	r.Crossing = crossing(t, 4)
	m.receive(now, r, "publish 1000", "ask m from 1000") // the table was not complete yet

	m = callerAt(t, 3)
	r = m.reply(1000)
	r.Crossing = crossing(t, 4)
	m.receive(10*ms, unsolicited(r), "ask m from 3")
	m.wantTable(3)

	m = callerAt(t, 4)
	r = m.reply(1000)
	r.Crossing = crossing(t, 4)
	r.Crossing.Unproven = []leasehold.Key{7} // where no range starts
	m.receive(10*ms, unsolicited(r), "mixed history", "ask m from 0")
	m.wantTable(4)
}

// The loss of contact is emitted once, and is not a loss of state. When a manager replies again, the losses in
// between are emitted, and then contact is restored.
func TestCallerLosesContact(t *testing.T) {
	c := callerAt(t, 2)
	var at []mono.Instant
	for now := mono.Instant(0); now < 100*second; now = c.wake {
		actions, wake := c.machine.Advance(now)
		if wake <= now {
			t.Fatalf("at %v the next wake is at %v", now, wake)
		}
		c.wake = wake
		for _, a := range actions {
			switch a.(type) {
			case lookup.Contact:
				at = append(at, now)
			case lookup.Losses:
				t.Errorf("at %v: %s, want no losses", now, c.describe(a))
			}
		}
	}
	if diff := cmp.Diff([]mono.Instant{30 * second}, at); diff != "" {
		t.Fatalf("times of lost contact (-want +got):\n%s", diff)
	}
	c.wantTable(2) // the table is kept
	asked := c.untilRequest("ask all from 2")
	age := asked.Add(10 * time.Millisecond).Sub(0)
	c.receive(asked+10*ms, c.snapshot(6), "snapshot", "publish 6", `losses: "a" 0-50@1 unknown 3 "b" 100-0@2 unknown 5`,
		"contact back", fmt.Sprint("restore contact after ", age))
	c.untilRequest("ask m from 6")
}

// An outage without losses emits no losses.
func TestCallerLosesContactAndNothingElse(t *testing.T) {
	c := callerAt(t, 2)
	c.advance(200*second, "contact lost", "lose contact after 3m20s", "ask m from 2")
	c.receive(200*second+10*ms, c.reply(2), "contact back", "restore contact after 3m20.01s")
}

// A reply whose proof is older than Stale does not restore contact.
func TestCallerContactNeedsAFreshProof(t *testing.T) {
	c := callerAt(t, 2)
	c.advance(200*second, "contact lost", "lose contact after 3m20s", "ask m from 2")
	r := c.reply(2)
	r.Age = 30 * time.Second
	c.receive(200*second, r)
	c.untilRequest("ask m from 2")
	c.receive(c.wake-1, c.reply(2), "contact back", fmt.Sprint("restore contact after ", (c.wake-1).Sub(170*second)))
}

// With conservative recovery the whole key space is reported as lost when contact is lost, and again every Stale
// until it is restored.
func TestCallerConservativeRecovery(t *testing.T) {
	c := conservativeAt(t, 2)
	const everything = `losses: "" 0-0@0 contact lost 2`
	var reported []mono.Instant
	for now := mono.Instant(0); now < 100*second; now = c.wake {
		actions, wake := c.machine.Advance(now)
		if wake <= now {
			t.Fatalf("at %v the next wake is at %v", now, wake)
		}
		c.wake = wake
		for _, a := range actions {
			if c.describe(a) == everything {
				reported = append(reported, now)
			}
		}
	}
	if diff := cmp.Diff([]mono.Instant{30 * second, 60 * second, 90 * second}, reported); diff != "" {
		t.Fatalf("times of these reports (-want +got):\n%s", diff)
	}
	c.wantTable(2)

	at := c.untilRequest("ask all from 2")
	c.receive(at+10*ms, c.reply(2), "contact back", fmt.Sprint("restore contact after ", (at+10*ms).Sub(0)))
	c.untilRequest("ask m from 2")
}

// Several overdue reports are emitted once.
func TestCallerConservativeRecoveryLate(t *testing.T) {
	c := conservativeAt(t, 2)
	c.advance(200*second, "contact lost", "lose contact after 3m20s", `losses: "" 0-0@0 contact lost 2`, "ask m from 2")
	if c.wake > 230*second {
		t.Errorf("next wake at %v, want at most 230 s, the time of the next report", c.wake)
	}
}

func TestCallerWithoutTableHasNoContactToLose(t *testing.T) {
	c := newCaller(t)
	c.advance(200*second, "ask all from 0")
}

// The proof of a reply is as old as its request, plus the age in the reply.
func TestCallerAge(t *testing.T) {
	for _, c := range []struct {
		name string
		age  time.Duration
		want mono.Instant
	}{
		{"none", 0, 34 * second},
		{"some", 2 * time.Second, 32 * second},
		{"more than the lookup knew", 5 * time.Second, 30 * second},
		{"without end", 1<<63 - 1, 30 * second},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := callerAt(t, 2)
			m.step(4*second, lookup.Refresh{}, "ask m from 2")
			r := m.reply(2)
			r.Age = c.age
			m.receive(4400*ms, r) // a delay of the reply makes no difference
			for m.wake < c.want {
				actions, wake := m.machine.Advance(m.wake)
				for _, a := range actions {
					if _, lost := a.(lookup.Contact); lost {
						t.Fatalf("contact lost at %v, want %v", m.wake, c.want)
					}
				}
				m.wake = wake
			}
			actions, _ := m.machine.Advance(c.want)
			if len(actions) < 2 || m.describe(actions[0]) != "contact lost" {
				t.Errorf("contact is not lost at %v: actions %v", c.want, actions)
			}
		})
	}
}

// Neither a reply to an earlier request nor an unsolicited message is a
// proof.
func TestCallerOnlyTheNewestAnswerCounts(t *testing.T) {
	c := callerAt(t, 2)
	c.step(4*second, lookup.Refresh{}, "ask m from 2")
	old := c.reply(2)
	at := c.untilRequest("leader silent", "ask all from 2")
	c.receive(at+1, old)
	c.receive(at+2, unsolicited(c.reply(2)))
	c.advance(30*second, "contact lost", "lose contact after 30s", "leader silent", "ask all from 2")
}

func TestCallerAsksAllManagers(t *testing.T) {
	c := callerAt(t, 2)
	at := c.untilRequest("ask m from 2")
	waits := []mono.Instant{500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 5000 * ms, 5000 * ms}
	for i, most := range waits {
		if wait := c.wake - at; wait < most*7/8 || wait > most {
			t.Errorf("timeout after %d misses is %v, want %v less up to an eighth", i, wait, most)
		}
		want := []string{"ask all from 2"}
		if i == 0 {
			want = []string{"leader silent", "ask all from 2"}
		}
		at = c.untilRequest(want...)
	}
	c.receive(at+1, c.reply(2))
	if c.wake < at+4375*ms {
		t.Errorf("requests at %v and %v, want the poll interval between them after a reply", at, c.wake)
	}
}

func TestCallerRedirect(t *testing.T) {
	to := func(leader storage.ManagerID, term leasehold.Term) lookup.Event {
		return lookup.Redirect{NotLeader: protocol.NotLeader{Leader: leader, Term: term}}
	}
	c := callerAt(t, 2)
	at := c.untilRequest("ask m from 2")
	c.step(at+1, to("m2", 2)) // the leader may still reply
	at = c.untilRequest("leader silent", "ask all from 2")
	c.step(at+1, to("", 2))
	c.step(at+2, to("m2", 0)) // an earlier term
	c.step(at+3, to("m2", 2), "ask m2 from 2")
	c.step(at+4, to("m2", 2)) // the same leader
	r := c.reply(2)
	r.Leader, r.Term = "m2", 2
	c.receive(at+5, r)
	c.untilRequest("ask m2 from 2")
}

func TestCallerDrops(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*protocol.LookupReply)
		want  []string
	}{
		{"invalid", func(r *protocol.LookupReply) { r.LSN = 9 }, []string{"bad message"}},
		{"another namespace", func(r *protocol.LookupReply) { r.Namespace = "other" }, []string{"foreign message"}},
		{"an earlier term", func(r *protocol.LookupReply) { r.Term = 1 }, []string{"stale term"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := callerAt(t, 2)
			later := unsolicited(m.reply(2))
			later.Term = 2
			m.receive(1*ms, later)
			r := unsolicited(m.changes(2, 4))
			r.Term = 2
			c.spoil(r)
			m.receive(10*ms, r, c.want...)
			m.wantTable(2)
		})
	}
}

func TestCallerRefresh(t *testing.T) {
	c := callerAt(t, 2)
	c.step(1*second, lookup.Refresh{}, "ask m from 2")
	c.step(1001*ms, lookup.Refresh{}) // the outstanding reply may be older
	c.receive(1100*ms, c.changes(2, 3), "publish 3", `losses: "a" 0-50@1 released 3`, "ask m from 3")
	c.receive(1200*ms, c.reply(3))
	c.step(1300*ms, lookup.Refresh{}, "ask m from 3")
}

func TestCallerSlept(t *testing.T) {
	for _, conservative := range []bool{false, true} {
		c, report := callerAt(t, 2), []string(nil)
		if conservative {
			c, report = conservativeAt(t, 2), []string{`losses: "" 0-0@0 contact lost 2`}
		}
		lost := slices.Concat([]string{"slept", "contact lost", "lose contact after 30s"}, report, []string{"ask m from 2"})
		c.step(4*second, lookup.Refresh{}, "ask m from 2")
		old := c.reply(2)
		c.step(4100*ms, lookup.Slept{}, lost...)
		c.receive(4200*ms, old) // it may be arbitrarily old
		c.receive(4300*ms, c.reply(2), "contact back", "restore contact after 30.2s")
		c.step(4400*ms, lookup.Slept{}, lost...)
		again := []string{"slept", "ask m from 2"} // contact was lost before
		if conservative {
			again = slices.Concat([]string{"slept", "contact lost"}, report, []string{"ask m from 2"})
		}
		c.step(4500*ms, lookup.Slept{}, again...)
	}
}

// Age counts from the sending of the request, plus the age in the reply.
func TestCallerReportsItsAge(t *testing.T) {
	age := func(c *caller, now mono.Instant, want time.Duration, known bool) {
		t.Helper()
		if got, ok := c.machine.Age(now); ok != known || known && got != want {
			t.Errorf("at %v the age is %v, known: %t; want %v, %t", now, got, ok, want, known)
		}
	}
	c := newCaller(t)
	age(c, 0, 0, false) // no reply yet
	r := c.snapshot(2)
	r.Age = 20 * time.Second
	c.receive(100*ms, r, "publish 2")
	age(c, second, 21*time.Second, true)
	if c.wake > 10*second {
		t.Errorf("next wake at %v, want at most 10 s, when contact is lost", c.wake)
	}
	asked := c.untilRequest("ask m from 2")
	c.receive(asked+10*ms, c.reply(2))
	age(c, asked+second, time.Second, true)
	c.step(asked+2*second, lookup.Slept{}, "slept", "contact lost", "lose contact after 30s", "ask m from 2")
	age(c, asked+2*second, 0, false) // the clock stood still for an unknown time
	c.receive(asked+3*second, c.reply(2), "contact back", "restore contact after 31s")
	age(c, asked+3*second, time.Second, true)
	if got := c.machine.Term(); got != 1 {
		t.Errorf("the leader's term is %d, want 1", got)
	}
}

// A reply with an old table does not increase the age, unless the age is unknown.
func TestCallerAgeNeverGrowsByAnAnswer(t *testing.T) {
	c := callerAt(t, 2)
	asked := c.untilRequest("ask m from 2")
	r := c.reply(2)
	r.Age = time.Hour
	c.receive(asked, r)
	if got, known := c.machine.Age(asked); !known || got != asked.Sub(0) {
		t.Errorf("the age is %v, known: %t", got, known)
	}
}

// A broadcast with only a higher LSN makes the lookup request the changes.
func TestCallerRequestsAdvertisedChanges(t *testing.T) {
	c := callerAt(t, 2)
	c.receive(second, unsolicited(c.reply(2))) // the same LSN
	c.receive(second, unsolicited(c.reply(1)))
	c.receive(second, unsolicited(c.reply(3)), "ask m from 2")
	c.receive(1100*ms, unsolicited(c.reply(4))) // the outstanding request may have been sent too early
	c.receive(1200*ms, c.changes(2, 3), "publish 3", `losses: "a" 0-50@1 released 3`, "ask m from 3")
}

// The new changes that led to a table are published with it.
func TestCallerPublishesChanges(t *testing.T) {
	for _, c := range []struct {
		name     string
		reply    func(*caller) *protocol.LookupReply
		from, to int
	}{
		{"the next changes", func(c *caller) *protocol.LookupReply { return unsolicited(c.changes(2, 4)) }, 2, 4},
		{"overlapping changes", func(c *caller) *protocol.LookupReply { return unsolicited(c.changes(0, 4)) }, 2, 4},
		{"a snapshot", func(c *caller) *protocol.LookupReply { return c.snapshot(4) }, 4, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			caller := callerAt(t, 2)
			caller.untilRequest("ask m from 2")
			actions, _ := caller.machine.Step(6*second, lookup.Reply{LookupReply: c.reply(caller)})
			for _, a := range actions {
				if p, ok := a.(lookup.Publish); ok {
					if diff := cmp.Diff(changeLog[c.from:c.to], p.Changes, cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("changes (-want +got):\n%s", diff)
					}
					return
				}
			}
			t.Error("no table is published")
		})
	}
}

// A refused lookup keeps its table, waits, and sends the next request to all managers.
func TestCallerRefused(t *testing.T) {
	c := callerAt(t, 2)
	asked := c.untilRequest("ask m from 2")
	c.step(asked+10*ms, lookup.Refused{Kind: leasehold.ErrNotFound}, "refused")
	c.wantTable(2)
	if c.wake < asked+4*second || c.wake > asked+5010*ms {
		t.Errorf("refused at %v, next request at %v, want after the poll interval of 5 s", asked, c.wake)
	}
	c.untilRequest("ask all from 2")
	for now := c.wake; now < 31*second; now = c.wake { // until contact is lost
		actions, wake := c.machine.Step(now, lookup.Refused{Kind: leasehold.ErrNotFound})
		for _, a := range actions {
			if _, ok := a.(lookup.Contact); ok && now < 30*second {
				t.Errorf("contact is lost at %v, want not before 30 s", now)
			} else if ok {
				return
			}
		}
		c.wake = max(wake, now+ms)
	}
	t.Error("contact is not lost after 30 s of refusals")
}

// A lookup polls on a beat, which is slightly earlier than without beats, and never later.
func TestPollsOnABeat(t *testing.T) {
	const poll, length = 5 * time.Second, 80 * time.Millisecond
	cfg := callerConfig()
	cfg.Poll, cfg.Beats = poll, mono.BeatsAt(mono.Instant(7*time.Millisecond))
	m, err := lookup.New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{t: t, machine: m}
	c.advance(0, "ask all from 0")
	c.receive(0, c.snapshot(2), "publish 2")
	asked := mono.Instant(0)
	for range 20 {
		if pause := c.wake.Sub(asked); pause > poll || pause < poll*7/8-length || time.Duration(c.wake)%length != 7*time.Millisecond {
			t.Errorf("requests at %v and %v, want the second one on a beat, up to %v later", asked, c.wake, poll)
		}
		asked = c.untilRequest("ask m from 2")
		c.receive(asked.Add(time.Millisecond), c.reply(2))
	}
}
