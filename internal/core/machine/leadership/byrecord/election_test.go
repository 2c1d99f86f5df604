package byrecord_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// Every candidate here has a TTL of 3 s, renews every second, and waits for a record to be
// unchanged for 3.6 s.
const (
	second = mono.Instant(time.Second)
	ms     = mono.Instant(time.Millisecond)
)

var (
	ownSession   = leasehold.Session{1}
	otherSession = leasehold.Session{2}
)

func config() byrecord.Config {
	return byrecord.Config{Self: "me", Session: ownSession, TTL: 3 * time.Second, Drift: 1.2, Boot: sameBoot, Rand: rand.New(rand.NewPCG(1, 2))}
}

// sameBoot is the boot of the machine on which all managers run.
const sameBoot = "boot 1"

// A candidate is a manager in an election whose actions the test executes by hand.
type candidate struct {
	t       *testing.T
	machine *byrecord.Machine
	wake    mono.Instant
	swap    byrecord.Swap // the last one
}

// standby returns a candidate that has sent its first read.
func standby(t *testing.T, change ...func(*byrecord.Config)) *candidate {
	t.Helper()
	cfg := config()
	for _, c := range change {
		c(&cfg)
	}
	m, err := byrecord.New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := &candidate{t: t, machine: m}
	c.advance(0, "read")
	return c
}

// leader returns a candidate that leads in term 1, with version 1 of the record, until 3 s.
func leader(t *testing.T) *candidate {
	t.Helper()
	c := standby(t)
	c.step(0, byrecord.Seen{}, "swap 0 for term 1 beat 1")
	c.step(0, done(1), "elected", "lead in term 1 until 3.000s")
	return c
}

// step steps the machine and compares its actions.
func (c *candidate) step(now mono.Instant, e byrecord.Event, want ...string) {
	c.t.Helper()
	if s, ok := e.(byrecord.Swapped); ok && s.Swap == (byrecord.Swap{}) {
		s.Swap = c.swap // reply to the last one
		e = s
	}
	actions, wake := c.machine.Step(now, e)
	c.compare(now, fmt.Sprintf("%T", e), actions, wake, want)
}

// advance advances the machine and compares its actions.
func (c *candidate) advance(now mono.Instant, want ...string) {
	c.t.Helper()
	actions, wake := c.machine.Advance(now)
	c.compare(now, "time", actions, wake, want)
}

func (c *candidate) compare(now mono.Instant, what string, actions []byrecord.Action, wake mono.Instant, want []string) {
	c.t.Helper()
	c.wake = wake
	var got []string
	for _, a := range actions {
		if s, ok := a.(byrecord.Swap); ok {
			c.swap = s
		}
		got = append(got, describe(a))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Fatalf("at %v, %s (-want +got):\n%s", now, what, diff)
	}
}

// describe formats an action.
func describe(a byrecord.Action) string {
	switch a := a.(type) {
	case byrecord.Read:
		if a.Fresh {
			return "read afresh"
		}
		return "read"
	case byrecord.Swap:
		s := fmt.Sprintf("swap %d for term %d beat %d", a.Prev, a.New.Term, a.New.Beat)
		if a.New.Resigned {
			s += ", resigned"
		}
		return s
	case byrecord.Lead:
		s := fmt.Sprintf("lead in term %d until %v", a.Term, a.Until)
		if a.Floor > 0 {
			s += fmt.Sprintf(" above %d", a.Floor)
		}
		if a.Uncertain {
			s += ", uncertain"
		}
		if a.LostBelow != 0 {
			s += ", restored"
		}
		return s
	case byrecord.Extend:
		return fmt.Sprintf("extend until %v", a.Until)
	case byrecord.StepDown:
		return "step down"
	case byrecord.Resigned:
		return "has resigned"
	case byrecord.Note:
		return a.What.String()
	}
	return fmt.Sprintf("%T", a)
}

func (c *candidate) wantLeads(now mono.Instant, want bool) {
	c.t.Helper()
	if got := c.machine.Leads(now); got != want {
		c.t.Errorf("at %v: Leads = %t, want %t", now, got, want)
	}
}

func done(v storage.Version) byrecord.Event {
	return byrecord.Swapped{Outcome: storage.Done, Version: v}
}

func unknown() byrecord.Event { return byrecord.Swapped{Outcome: storage.Unknown} }

func conflict() byrecord.Event { return byrecord.Swapped{Outcome: storage.Conflict} }

// theirs is a record of another manager.
func theirs(v storage.Version, term leasehold.Term, beat uint64) storage.Record {
	return storage.Record{Version: v, Term: term, Leader: "other", Session: otherSession, Beat: beat, Boot: sameBoot, Uptime: time.Hour}
}

func ours(v storage.Version, term leasehold.Term, beat uint64) storage.Record {
	return storage.Record{Version: v, Term: term, Leader: "me", Session: ownSession, Beat: beat, Wait: 3600 * time.Millisecond}
}

// seen is a record from a read, on a machine with an uptime of an hour.
func seen(r storage.Record) byrecord.Event { return byrecord.Seen{Record: r, Uptime: time.Hour} }

func TestConfigRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*byrecord.Config)
		want  string
	}{
		{"no name", func(c *byrecord.Config) { c.Self = "" }, `election: Self, Session and Rand must be set`},
		{"no session", func(c *byrecord.Config) { c.Session = leasehold.Session{} }, `election "me": Self, Session and Rand must be set`},
		{"no Rand", func(c *byrecord.Config) { c.Rand = nil }, `election "me": Self, Session and Rand must be set`},
		{"too short a TTL", func(c *byrecord.Config) { c.TTL = 9 * time.Millisecond }, `election "me": ttl 9ms, renew 3ms and poll 1.5ms: want a ttl of at least 10 ms, two renewals in it, and a positive poll`},
		{"too few renewals", func(c *byrecord.Config) { c.Renew = 1501 * time.Millisecond }, `election "me": ttl 3s, renew 1.501s and poll 500ms: want a ttl of at least 10 ms, two renewals in it, and a positive poll`},
		{"negative renewal interval", func(c *byrecord.Config) { c.Renew = -1 }, `election "me": ttl 3s, renew -1ns and poll 500ms: want a ttl of at least 10 ms, two renewals in it, and a positive poll`},
		{"negative poll interval", func(c *byrecord.Config) { c.Poll = -1 }, `election "me": ttl 3s, renew 1s and poll -1ns: want a ttl of at least 10 ms, two renewals in it, and a positive poll`},
		{"drift below 1", func(c *byrecord.Config) { c.Drift = 0.9 }, `election "me": drift is 0.9, want 1 to 10`},
		{"drift NaN", func(c *byrecord.Config) { c.Drift = mono.Drift(math.NaN()) }, `election "me": drift is NaN, want 1 to 10`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := config()
			c.spoil(&cfg)
			_, err := byrecord.New(0, cfg)
			if err == nil {
				t.Fatal("the configuration is accepted")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" || !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("kind %v (-want +got):\n%s", leasehold.KindOf(err), diff)
			}
		})
	}
}

func TestConfigDefaults(t *testing.T) {
	cfg := byrecord.Config{Self: "me", Session: ownSession, Rand: rand.New(rand.NewPCG(1, 2))}
	m, err := byrecord.New(0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.Advance(0)
	actions, _ := m.Step(0, byrecord.Seen{})
	swap, _ := actions[len(actions)-1].(byrecord.Swap)
	actions, wake := m.Step(0, byrecord.Swapped{Swap: swap, Outcome: storage.Done, Version: 1})
	if got := describe(actions[len(actions)-1]); got != "lead in term 1 until 3.000s" || wake != second {
		t.Errorf("%s, and renew at %v; want 3 s and 1 s", got, wake)
	}
}

func TestFirstLeader(t *testing.T) {
	c := standby(t)
	c.wantLeads(0, false)
	c.step(10*ms, byrecord.Seen{}, "swap 0 for term 1 beat 1")
	c.step(50*ms, done(1), "elected", "lead in term 1 until 3.010s")
	c.wantLeads(3010*ms-1, true)
	c.wantLeads(3010*ms, false)
	if who, term := c.machine.Leader(); who != "me" || term != 1 {
		t.Errorf("the leader is %q in term %d", who, term)
	}
}

// A read without a reply is repeated.
func TestReadsAgain(t *testing.T) {
	c := standby(t)
	c.step(10*ms, byrecord.ReadFailed{})
	if c.wake < 400*ms || c.wake > 500*ms {
		t.Errorf("next read at %v, want after 0.4 to 0.5 s", c.wake)
	}
	c.advance(c.wake, "read")
}

func TestTakeoverWaitsFromFirstSight(t *testing.T) {
	c := standby(t)
	c.step(1*second, seen(theirs(5, 2, 9)), "read")
	c.step(2*second, seen(theirs(5, 2, 9)), "read") // read again: the wait continues
	c.step(4*second, seen(theirs(5, 2, 9)), "read")
	c.advance(4599*ms, "read")
	if c.wake > 4600*ms {
		t.Errorf("wake time %v is after the end of the wait", c.wake)
	}
	c.advance(4600*ms, "takeover", "swap 5 for term 3 beat 1")
	c.step(4650*ms, done(6), "elected", "lead in term 3 until 7.600s")
}

// A record that is renewed or replaced restarts the wait.
func TestTakeoverWaitsForEachRecord(t *testing.T) {
	for _, c := range []struct {
		name   string
		record storage.Record
	}{
		{"a renewal", theirs(6, 2, 10)},
		{"another leader", storage.Record{Version: 6, Term: 3, Leader: "third", Session: leasehold.Session{3}, Beat: 1}},
		{"an earlier process of this manager", storage.Record{Version: 6, Term: 3, Leader: "me", Session: otherSession, Beat: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := standby(t)
			m.step(1*second, seen(theirs(5, 2, 9)), "read")
			m.step(4599*ms, seen(c.record), "read")
			m.advance(5100*ms, "read")
			m.advance(8198*ms, "read")
			m.advance(8199*ms, "takeover", fmt.Sprintf("swap 6 for term %d beat 1", c.record.Term+1))
		})
	}
}

func TestResignedRecordIsTakenAtOnce(t *testing.T) {
	c := standby(t)
	gone := theirs(5, 2, 9)
	gone.Resigned = true
	c.step(10*ms, seen(gone), "resignation seen", "swap 5 for term 3 beat 1")
	if who, term := c.machine.Leader(); who != "" || term != 2 {
		t.Errorf("the leader is %q in term %d, want none in 2", who, term)
	}
	c.step(20*ms, done(6), "elected", "lead in term 3 until 3.010s")
}

func TestStaleReadsAreIgnored(t *testing.T) {
	c := standby(t)
	c.step(1*second, seen(theirs(5, 2, 9)), "read")
	c.step(1100*ms, seen(theirs(4, 2, 8)), "old record")
	c.step(1200*ms, byrecord.Seen{}, "old record")
	if who, term := c.machine.Leader(); who != "other" || term != 2 {
		t.Errorf("the leader is %q in term %d", who, term)
	}
	c.step(4599*ms, seen(theirs(3, 1, 7)), "old record", "read")
	c.advance(4600*ms, "takeover", "swap 5 for term 3 beat 1")

	l := leader(t)
	l.step(500*ms, seen(theirs(0, 0, 0)), "old record")
	l.step(500*ms, seen(ours(1, 1, 1))) // our own
	l.wantLeads(500*ms, true)
}

// A watch event with the record of a swap in flight proves that it was written: authority counts
// from the first send time of the swap. A late reply is not a reply to the next swap.
func TestWatchDuringSwap(t *testing.T) {
	for _, late := range []byrecord.Swapped{
		{Outcome: storage.Done, Version: 2}, {Outcome: storage.Conflict}, {Outcome: storage.Unknown},
	} {
		t.Run(late.Outcome.String(), func(t *testing.T) {
			c := leader(t)
			c.advance(1*second, "swap 1 for term 1 beat 2")
			late.Swap = c.swap
			c.step(1050*ms, seen(ours(1, 1, 1))) // the record before the swap proves nothing
			c.step(1100*ms, seen(ours(2, 1, 2)), "extend until 4.000s")
			c.advance(2*second, "swap 2 for term 1 beat 3")
			c.step(2100*ms, late)
			c.advance(4*second, "authority lapsed")
			c.step(4100*ms, done(3), "authority regained", "extend until 5.000s", "swap 3 for term 1 beat 4")
		})
	}
}

// A watch event may be the first to show an election or a resignation.
func TestWatchShowsElectionAndResignation(t *testing.T) {
	c := standby(t)
	c.step(0, byrecord.Seen{}, "swap 0 for term 1 beat 1")
	c.step(100*ms, seen(ours(1, 1, 1)), "elected", "lead in term 1 until 3.000s")
	c.step(500*ms, byrecord.Resign{}, "resigning", "step down", "swap 1 for term 1 beat 2, resigned")
	gone := ours(2, 1, 2)
	gone.Resigned, gone.Boot, gone.Uptime = true, sameBoot, time.Hour+400*time.Millisecond
	c.step(600*ms, seen(gone), "has resigned")
}

func TestUnknownSwap(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(*candidate)
	}{
		{"has happened", func(c *candidate) {
			c.step(900*ms, seen(ours(1, 1, 1)), "swap found", "elected", "lead in term 1 until 3.000s")
		}},
		{"has not happened, and is sent again unchanged", func(c *candidate) {
			c.step(900*ms, byrecord.Seen{}, "swap retried", "swap 0 for term 1 beat 1")
			c.step(950*ms, done(1), "elected", "lead in term 1 until 3.000s") // from the first send time
		}},
		{"happens between the read and the retry", func(c *candidate) {
			c.step(900*ms, byrecord.Seen{}, "swap retried", "swap 0 for term 1 beat 1")
			c.step(950*ms, conflict(), "swap unknown")
			c.advance(980 * ms)
			c.advance(982*ms, "read afresh") // with a backoff, since it is the second time
			c.step(990*ms, seen(ours(1, 1, 1)), "swap found", "elected", "lead in term 1 until 3.000s")
		}},
		{"was beaten", func(c *candidate) {
			c.step(900*ms, seen(theirs(1, 1, 1)), "beaten")
			c.wantLeads(900*ms, false)
			c.advance(1400*ms, "read")
			c.advance(4499*ms, "read")
			c.advance(4500*ms, "takeover", "swap 1 for term 2 beat 1")
		}},
		{"was beaten by an earlier process of this manager", func(c *candidate) {
			r := ours(1, 1, 1)
			r.Session = otherSession
			c.step(900*ms, seen(r), "beaten")
		}},
		{"is read until there is a reply", func(c *candidate) {
			c.step(300*ms, byrecord.ReadFailed{})
			c.advance(599 * ms)
			c.advance(600*ms, "read afresh")
			c.advance(1100*ms, "read afresh")
			c.step(1200*ms, unknown()) // unsolicited
			c.step(1300*ms, done(1))   // unsolicited
			c.step(1400*ms, seen(ours(1, 1, 1)), "swap found", "elected", "lead in term 1 until 3.000s", "swap 1 for term 1 beat 2")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := standby(t)
			m.step(0, byrecord.Seen{}, "swap 0 for term 1 beat 1")
			m.step(100*ms, unknown(), "swap unknown", "read afresh")
			c.then(m)
		})
	}
}

// A conflict may be caused by our own swap, sent twice: it is resolved by a read, like an unknown
// outcome.
func TestConflictIsRead(t *testing.T) {
	c := leader(t)
	c.advance(1*second, "swap 1 for term 1 beat 2")
	c.step(1100*ms, conflict(), "swap unknown", "read afresh")
	c.wantLeads(1100*ms, true)
	c.step(1200*ms, seen(theirs(2, 2, 1)), "beaten", "deposed", "step down")
	c.wantLeads(1200*ms, false)
	if who, term := c.machine.Leader(); who != "other" || term != 2 {
		t.Errorf("the leader is %q in term %d", who, term)
	}
}

func TestRenews(t *testing.T) {
	c := leader(t)
	if c.wake != second {
		t.Errorf("next renewal at %v, want 1 s", c.wake)
	}
	c.advance(999 * ms)
	c.advance(1000*ms, "swap 1 for term 1 beat 2")
	c.step(1020*ms, done(2), "extend until 4.000s")
	c.advance(2000*ms, "swap 2 for term 1 beat 3")
	c.step(2950*ms, done(3), "extend until 5.000s")
	if c.wake != 3000*ms {
		t.Errorf("next renewal at %v, want one second after it sent the last renewal", c.wake)
	}
}

// Authority counts from the send time, however late the reply.
func TestLateElection(t *testing.T) {
	c := standby(t)
	c.step(0, byrecord.Seen{}, "swap 0 for term 1 beat 1")
	c.step(4*second, done(1), "elected", "lead in term 1 until 3.000s", "authority lapsed", "swap 1 for term 1 beat 2")
	c.wantLeads(4*second, false)
	c.step(4200*ms, done(2), "authority regained", "extend until 7.000s")
	c.wantLeads(4200*ms, true)
}

func TestLapseAndRegain(t *testing.T) {
	c := leader(t)
	c.advance(1*second, "swap 1 for term 1 beat 2")
	c.advance(2999 * ms)
	c.advance(3000*ms, "authority lapsed")
	c.wantLeads(3000*ms, false)
	c.advance(3500 * ms) // it is noted once
	c.step(3600*ms, done(2), "authority regained", "extend until 4.000s", "swap 2 for term 1 beat 3")
	c.wantLeads(3600*ms, true)
	c.wantLeads(4000*ms, false)
}

func TestLapseAndLoss(t *testing.T) {
	c := leader(t)
	c.advance(1*second, "swap 1 for term 1 beat 2")
	c.advance(5*second, "authority lapsed")
	c.step(6*second, conflict(), "swap unknown", "read afresh")
	c.step(6100*ms, seen(theirs(2, 2, 1)), "beaten", "deposed", "step down")
	c.advance(6600*ms, "read")
}

// A leader that reads a record of another manager has been deposed.
func TestDeposedByARead(t *testing.T) {
	c := leader(t)
	c.step(500*ms, seen(theirs(2, 2, 1)), "deposed", "step down", "read")
	c.wantLeads(500*ms, false)
	c.advance(4099*ms, "read")
	c.advance(4100*ms, "takeover", "swap 2 for term 3 beat 1")
}

func TestResign(t *testing.T) {
	c := leader(t)
	c.step(500*ms, byrecord.Resign{}, "resigning", "step down", "swap 1 for term 1 beat 2, resigned")
	c.wantLeads(500*ms, false)
	c.step(600*ms, done(2), "has resigned")
	if c.wake != mono.Never {
		t.Errorf("wake time %v", c.wake)
	}
	c.advance(10 * second)
}

func TestResignOfStandby(t *testing.T) {
	c := standby(t)
	c.step(100*ms, seen(theirs(5, 2, 9)))
	c.step(200*ms, byrecord.Resign{}, "resigning", "has resigned")
	c.advance(10 * second)
}

func TestResignWhileRenewing(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(*candidate)
	}{
		{"which is done", func(c *candidate) {
			c.step(1200*ms, done(2), "swap 2 for term 1 beat 3, resigned")
			c.step(1300*ms, done(3), "has resigned")
		}},
		{"which is found", func(c *candidate) {
			c.step(1200*ms, unknown(), "swap unknown", "read afresh")
			c.step(1300*ms, seen(ours(2, 1, 2)), "swap found", "swap 2 for term 1 beat 3, resigned")
			c.step(1400*ms, done(3), "has resigned")
		}},
		{"which is beaten", func(c *candidate) {
			c.step(1200*ms, conflict(), "swap unknown", "read afresh")
			c.step(1300*ms, seen(theirs(2, 2, 1)), "beaten", "has resigned")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := leader(t)
			m.advance(1000*ms, "swap 1 for term 1 beat 2")
			m.step(1100*ms, byrecord.Resign{}, "resigning", "step down")
			m.wantLeads(1100*ms, false)
			c.then(m)
			m.wantLeads(1400*ms, false)
			m.advance(10 * second)
		})
	}
}

// The resignation itself may have an unknown outcome.
func TestResignationUnknown(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(*candidate)
	}{
		{"has happened", func(c *candidate) {
			r := ours(2, 1, 2)
			r.Resigned = true
			c.step(700*ms, seen(r), "swap found", "has resigned")
		}},
		{"has not happened", func(c *candidate) {
			c.step(700*ms, seen(ours(1, 1, 1)), "swap retried", "swap 1 for term 1 beat 2, resigned")
			c.step(800*ms, done(2), "has resigned")
		}},
		{"was superfluous", func(c *candidate) {
			c.step(700*ms, seen(theirs(2, 2, 1)), "beaten", "has resigned")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := leader(t)
			m.step(500*ms, byrecord.Resign{}, "resigning", "step down", "swap 1 for term 1 beat 2, resigned")
			m.step(600*ms, unknown(), "swap unknown", "read afresh")
			c.then(m)
		})
	}
}

// A standby with a shorter TTL than the leader waits for the leader's Wait.
func TestWaitOfTheLeaderApplies(t *testing.T) {
	c := standby(t)
	record := theirs(5, 2, 9)
	record.Wait = 10 * time.Second
	c.step(100*ms, seen(record))
	for at := 3600 * ms; at < 10_100*ms; at += 100 * ms {
		c.machine.Advance(at)
		c.wantLeads(at, false)
	}
	if actions, _ := c.machine.Advance(10_101 * ms); len(actions) < 2 {
		t.Errorf("after the leader's Wait: actions %v, want a takeover", actions)
	}
}

func TestOutrankedSetsTheFloor(t *testing.T) {
	t.Run("of a leader", func(t *testing.T) {
		c := leader(t)
		c.step(500*ms, byrecord.Outranked{By: 7}, "swap 1 for term 1 beat 2") // the renewal checks it
		c.wantLeads(500*ms, true)
		c.step(600*ms, done(2), "history lost", "deposed", "step down", "own record", "uncertain", "swap 2 for term 8 beat 1")
	})
	t.Run("of a standby", func(t *testing.T) {
		c := standby(t)
		c.step(100*ms, seen(theirs(5, 2, 9)))
		c.step(200*ms, byrecord.Outranked{By: 7}, "read")
		c.advance(3699*ms, "read")
		c.advance(3700*ms, "takeover", "swap 5 for term 8 beat 1")
	})
	t.Run("unless the record is higher", func(t *testing.T) {
		c := standby(t)
		c.step(100*ms, byrecord.Outranked{By: 7}, "read")
		c.step(200*ms, seen(theirs(5, 9, 1)))
		c.advance(3799*ms, "read")
		c.advance(3800*ms, "takeover", "swap 5 for term 10 beat 1")
	})
	t.Run("unless it is a known term", func(t *testing.T) {
		c := leader(t)
		c.step(500*ms, byrecord.Outranked{By: 1})
		c.step(500*ms, byrecord.Outranked{By: 0})
		c.wantLeads(500*ms, true)
	})
}

// A store that was restored from an old backup has no record of the last leaders, but owners have
// their terms. The leader, which is the only one, begins a higher term. Only a renewal sent after
// the report counts as proof. False reports cannot cause this often.
func TestForgetfulStore(t *testing.T) {
	c := leader(t)
	c.advance(1000*ms, "swap 1 for term 1 beat 2")
	c.step(1100*ms, byrecord.Outranked{By: 7})
	c.step(1200*ms, done(2), "extend until 4.000s") // sent before the report
	c.advance(2000*ms, "swap 2 for term 1 beat 3")
	c.step(2100*ms, done(3), "history lost", "deposed", "step down", "own record", "uncertain", "swap 3 for term 8 beat 1")
	c.wantLeads(2100*ms, false)
	c.step(2200*ms, done(4), "elected", fmt.Sprintf("lead in term 8 until 5.100s above %d, uncertain", storage.Forgettable(8)))
	c.step(2300*ms, byrecord.Outranked{By: 9})
	c.advance(2325*ms, "swap 4 for term 8 beat 2")
	c.step(2400*ms, done(5), "extend until 5.325s")
	c.wantLeads(2400*ms, true)
}

// A term is led at most once: a renewal that succeeds after the leader stepped down does not make
// it the leader of that term again.
func TestDeposedWhileRenewing(t *testing.T) {
	c := leader(t)
	c.advance(1000*ms, "swap 1 for term 1 beat 2")
	c.step(1100*ms, byrecord.Deposed{By: 7}, "deposed", "step down")
	c.step(1200*ms, done(2), "own record", "swap 2 for term 8 beat 1")
	c.wantLeads(1200*ms, false)
	c.step(1300*ms, done(3), "elected", "lead in term 8 until 4.200s")
}

func TestSlept(t *testing.T) {
	t.Run("a leader starts a new term", func(t *testing.T) {
		c := leader(t)
		c.step(500*ms, byrecord.Slept{}, "slept", "deposed", "step down", "own record", "uncertain", "swap 1 for term 2 beat 1")
		c.wantLeads(500*ms, false)
		c.step(600*ms, done(2), "elected", fmt.Sprintf("lead in term 2 until 3.500s above %d, uncertain", storage.Forgettable(2)))
	})
	t.Run("a swap from before counts for nothing", func(t *testing.T) {
		c := standby(t)
		c.step(0, byrecord.Seen{}, "swap 0 for term 1 beat 1")
		c.step(100*ms, byrecord.Slept{}, "slept")
		c.step(200*ms, done(1), "elected", "lead in term 1 until 0.100s", "authority lapsed", "swap 1 for term 1 beat 2")
		c.wantLeads(200*ms, false)
	})
	t.Run("a standby reads the record", func(t *testing.T) {
		c := standby(t)
		c.step(100*ms, seen(theirs(5, 2, 9)))
		c.step(200*ms, byrecord.Slept{}, "slept", "read")
	})
}
