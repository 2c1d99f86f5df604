package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/history"
)

const (
	name                = "key-0"
	stale time.Duration = 100
)

var key = leasehold.KeyOf(name)

// A script is a sequence of records of owners and callers.
type script func(b *Book, c *Caller)

// held is a session's tenure of the key under a generation, from and until a time.
func held(session byte, g leasehold.Generation, from, to oracle.Time) script {
	return func(b *Book, _ *Caller) {
		b.Observe("o1", oracle.Record{
			About: oracle.Belief, Key: key, Generation: g, Session: leasehold.Session{session},
			Check: oracle.Span{Before: from, After: from}, Held: oracle.Span{Before: to, After: to},
		})
	}
}

// event is a record of the caller.
func event(e history.Event) script { return func(_ *Book, c *Caller) { c.Observe(e) } }

func opened(at oracle.Time) script { return event(history.Event{At: at, Opened: true}) }
func lives(at oracle.Time) script  { return event(history.Event{At: at}) }

// lost is a loss of all keys that the caller receives; the generation is 0 if it is unknown.
func lost(at oracle.Time, g leasehold.Generation) script {
	return event(history.Event{At: at, Loss: &history.Loss{Generation: g, Cause: leasehold.CauseExpired}})
}

func elsewhere(at oracle.Time) script {
	return event(history.Event{At: at, Loss: &history.Loss{Start: key + 1}})
}

// cutOff is a period without contact. losesContact and restored are the reports of the caller; reportsAllLost
// is the report of a conservative one.
func cutOff(from, to oracle.Time) script {
	return func(b *Book, c *Caller) { b.Cut(c.name, from, to) }
}

func reportsAllLost(at oracle.Time) script {
	return event(history.Event{At: at, Loss: &history.Loss{Cause: leasehold.CauseContact}})
}

func conservative(at oracle.Time) script {
	return event(history.Event{At: at, Opened: true, Conservative: true})
}

func losesContact(at oracle.Time) script {
	return event(history.Event{At: at, Contact: &history.Contact{Lost: true}})
}

func restored(at oracle.Time) script {
	return event(history.Event{At: at, Contact: &history.Contact{}})
}

func accepted(resource string, g leasehold.Generation) script {
	return func(b *Book, _ *Caller) { b.Accepted(resource, g) }
}

func table(lsn leasehold.LSN, hash uint64) script {
	return event(history.Event{At: 1, Table: &history.Table{LSN: lsn, Hash: hash}})
}

// another is a record of another caller.
func another(s script) script { return func(b *Book, _ *Caller) { s(b, b.Caller("c2")) } }

func write(value string, g leasehold.Generation, began, over oracle.Time) script {
	return event(history.Event{At: over, Call: &history.Call{Began: began, Write: true, Name: name, Value: value, Generation: g}})
}

func read(value string, g leasehold.Generation, began, over oracle.Time) script {
	return event(history.Event{At: over, Call: &history.Call{Began: began, Name: name, Value: value, Generation: g}})
}

func TestViolations(t *testing.T) {
	alive := []script{opened(1), lives(1000)}
	for _, test := range []struct {
		name  string
		story []script
		want  string // prefix of the first violation; empty: there is none
	}{
		{"nothing", nil, ""},
		{"one after the other", []script{held(1, 1, 10, 20), held(2, 2, 30, 40)}, ""},
		{"two at the same time", []script{held(1, 1, 10, 30), held(2, 2, 20, 40)}, "I1: two owners held a key at the same time (1 times): key "},
		{"a generation again", []script{held(1, 1, 10, 20), held(2, 1, 30, 40)}, "I2: a generation was granted twice (1 times): generation 1 "},
		{"a lower generation", []script{held(1, 2, 10, 20), held(2, 1, 30, 40)}, "I2: the generation of a key did not rise (1 times): key "},

		{"a loss is received", append(alive, held(1, 1, 10, 20), held(2, 2, 30, 40), lost(25, 1)), ""},
		{"a loss is received late", append(alive, held(1, 1, 10, 20), held(2, 2, 30, 40), lost(130, 0)), ""},
		{"a loss is received too late", append(alive, held(1, 1, 10, 20), held(2, 2, 30, 40), lost(131, 1)), "I4: a caller did not receive a loss (1 times): caller c1 "},
		{"only a loss of another key is received", append(alive, held(1, 1, 10, 20), held(2, 2, 30, 40), elsewhere(25)), "I4: a caller did not receive"},
		{"only a later loss is received", append(alive, held(1, 1, 10, 20), held(2, 2, 30, 40), lost(45, 2)), "I4: a caller did not receive"},
		{"the loss of an earlier generation includes it", append(alive, held(1, 3, 10, 20), held(2, 4, 30, 40), lost(45, 2)), ""},
		{"only an earlier loss is received", append(alive, held(1, 1, 10, 20), held(2, 2, 30, 40), lost(19, 0)), "I4: a caller did not receive"},
		{"the second of two losses is not received", append(alive, held(1, 1, 10, 20), held(2, 2, 30, 200), held(1, 3, 210, 300), lost(25, 1)), "I4: a caller did not receive"},
		{"the caller opened too late", []script{opened(20), lives(1000), held(1, 1, 10, 20), held(2, 2, 30, 40)}, ""},
		{"the caller ended before the deadline", []script{opened(1), lives(129), held(1, 1, 10, 20), held(2, 2, 30, 40)}, ""},
		{"one of two callers receives the loss", append(alive, held(1, 1, 10, 20), held(2, 2, 30, 40), lost(25, 1), func(b *Book, _ *Caller) {
			c := b.Caller("c2")
			c.Observe(history.Event{At: 1, Opened: true})
			c.Observe(history.Event{At: 1000})
		}), "I4: a caller did not receive a loss (1 times): caller c2 "},
		{"a false loss", append(alive, held(1, 1, 10, 50), lost(49, 1)), "I4: a reported loss was false"},
		{"a loss at the end of the tenure", append(alive, held(1, 1, 10, 50), lost(50, 1)), ""},

		{"a loss is received when contact is restored", append(alive, held(1, 1, 10, 20), held(2, 2, 30, 40), losesContact(120), lost(500, 1), restored(500)), ""},
		{"a loss is received after contact is restored", append(alive, held(1, 1, 10, 20), held(2, 2, 30, 40), losesContact(120), restored(500), lost(501, 1)), "I4: a caller did not receive"},
		{"contact is lost after the deadline", append(alive, held(1, 1, 10, 20), held(2, 2, 30, 40), losesContact(131), lost(500, 1), restored(500)), "I4: a caller did not receive"},
		{"contact is not restored", append(alive, held(1, 1, 10, 20), held(2, 2, 30, 40), losesContact(120)), ""},
		{"a conservative caller must not wait for contact", []script{conservative(1), lives(1000), held(1, 1, 10, 20), held(2, 2, 30, 40), losesContact(120), lost(500, 1), restored(500)}, "I4: a caller did not receive"},
		{"a conservative caller reports everything", []script{conservative(1), lives(1000), held(1, 1, 10, 20), held(2, 2, 30, 40), losesContact(120), reportsAllLost(120)}, ""},

		{"a cut is reported", append(alive, cutOff(100, 250), losesContact(200)), ""},
		{"a cut is reported after its end", append(alive, cutOff(100, 250), losesContact(251)), ""},
		{"a cut is reported conservatively", []script{conservative(1), lives(1000), cutOff(100, 250), losesContact(200), reportsAllLost(200)}, ""},
		{"a cut is not reported as a loss", []script{conservative(1), lives(1000), cutOff(100, 250), losesContact(200)}, "I4: a caller did not report lost contact"},
		{"a cut is short", append(alive, cutOff(100, 200)), ""},
		{"a cut is not reported", append(alive, cutOff(100, 250), lost(200, 1)), "I4: a caller did not report lost contact (1 times): caller c1 had no contact from 100 to 250,"},
		{"contact is lost before the cut", append(alive, cutOff(100, 250), losesContact(99)), "I4: a caller did not report lost contact"},
		{"a cut of another caller", append(alive, func(b *Book, _ *Caller) { b.Cut("c2", 100, 250) }), ""},
		{"the caller opened during the cut", []script{opened(150), lives(1000), cutOff(100, 250)}, ""},
		{"the caller ended during the cut", []script{opened(1), lives(200), cutOff(100, 250)}, ""},

		{"tokens that rise", []script{accepted("a", 1), accepted("a", 1), accepted("a", 2), accepted("b", 1)}, ""},
		{"a token that falls", []script{accepted("a", 2), accepted("b", 2), accepted("a", 1)}, "I9: an older token was accepted after a newer one (1 times): a write of a with generation 1 "},

		{"tables that agree", []script{table(1, 7), table(2, 8), table(2, 8), another(table(2, 8)), another(table(1, 7))}, ""},
		{"tables that differ", []script{table(1, 7), table(2, 8), another(table(2, 9))}, "I5: there were two tables of one LSN (1 times): callers c1 and c2 "},
		{"a table that goes back", []script{table(2, 8), table(1, 7)}, "I5: a table went back (1 times): the table of caller c1 went back from LSN 2 to 1"},

		{"a register", []script{write("a", 1, 10, 11), read("a", 1, 12, 13), read("", 2, 20, 21)}, ""},
		{"a lost write", []script{write("a", 1, 10, 11), read("", 1, 12, 13)}, "I1: a register is not linearizable (1 times): the history of register key-0 under generation 1 "},
		{"a write comes back", []script{write("a", 1, 10, 11), write("b", 1, 12, 13), read("a", 1, 14, 15)}, "I1: a register is not linearizable"},
		{"a write of another lease", []script{write("a", 1, 10, 11), read("a", 2, 12, 13)}, "I1: a register is not linearizable"},
		{"a write with unknown outcome, done late", []script{write("a", 0, 10, 11), read("", 1, 12, 13), read("a", 1, 14, 15)}, ""},
		{"a write with unknown outcome, not done", []script{write("a", 0, 10, 11), read("", 1, 12, 13)}, ""},
		{"a write with unknown outcome, done too early", []script{read("a", 1, 8, 9), write("a", 0, 10, 11)}, "I1: a register is not linearizable"},
		{"a write is answered under one lease, and read under another", []script{write("a", 0, 10, 10), write("a", 1, 10, 11), read("a", 2, 12, 13)}, "I1: a register is not linearizable"},
		{"a read after an answered write", []script{write("a", 0, 10, 10), write("a", 1, 10, 11), read("", 1, 12, 13)}, "I1: a register is not linearizable"},
		{"an old lease answers", []script{read("", 2, 10, 11), read("", 1, 12, 13)}, "I1: an older generation answered after a newer one"},
		{"an old lease answers concurrently", []script{read("", 2, 10, 13), read("", 1, 12, 14)}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := New([]leasehold.Key{key}, stale, 0)
			c := b.Caller("c1")
			for _, do := range test.story {
				do(b, c)
			}
			found, _ := b.Violations()
			switch {
			case test.want == "" && len(found) > 0:
				t.Errorf("found %v", found)
			case test.want != "" && !slices.ContainsFunc(found, func(v Violation) bool { return strings.HasPrefix(v.String(), test.want) }):
				t.Errorf("found %q, want %q", found, test.want)
			}
			if again, _ := b.Violations(); len(again) != len(found) {
				t.Errorf("a second call finds %d violations, want %d", len(again), len(found))
			}
		})
	}
}

// TestLate: losses that are received in time only because of the slack are counted.
func TestLate(t *testing.T) {
	for at, want := range map[oracle.Time]int{25: 0, 130: 0, 131: 1, 150: 1} {
		b := New([]leasehold.Key{key}, stale, 20)
		c := b.Caller("c1")
		for _, do := range []script{opened(1), lives(1000), held(1, 1, 10, 20), held(2, 2, 30, 40), lost(at, 1)} {
			do(b, c)
		}
		if found, n := b.Violations(); len(found) > 0 || n.Losses != 1 || n.Late != want {
			t.Errorf("received at %d: %+v, %v", at, n, found)
		}
	}
}

// TestPendingLosses: a running caller may still receive a loss, until the deadline.
func TestPendingLosses(t *testing.T) {
	lose := []script{opened(1), held(1, 1, 10, 20), held(2, 2, 30, 40)}
	for _, test := range []struct {
		name  string
		story []script
		want  int
	}{
		{"nothing is lost", []script{opened(1), held(1, 1, 10, 20)}, 0},
		{"not yet", append(lose, lives(41)), 1},
		{"it is received", append(lose, lost(41, 1)), 0},
		{"it is too late", append(lose, lives(131)), 0},
		{"the caller has ended", append(lose, lives(41), func(_ *Book, c *Caller) { c.Gone() }), 0},
		{"the caller opened later", []script{opened(25), held(1, 1, 10, 20), held(2, 2, 30, 40)}, 0},
		{"a cut is not reported yet", []script{opened(1), cutOff(10, 120)}, 1},
		{"a cut is reported", []script{opened(1), cutOff(10, 120), losesContact(110)}, 0},
		{"the caller has no contact", append(lose, losesContact(120), lives(200)), 1},
		{"it was received when contact was restored", append(lose, losesContact(120), lost(200, 1), restored(200)), 0},
	} {
		b := New([]leasehold.Key{key}, stale, 0)
		c := b.Caller("c1")
		for _, do := range test.story {
			do(b, c)
		}
		if got := b.PendingLosses(); got != test.want {
			t.Errorf("%s: %d losses are pending, want %d", test.name, got, test.want)
		}
	}
}

func TestCounts(t *testing.T) {
	b := New([]leasehold.Key{key}, stale, 0)
	c := b.Caller("c1")
	for _, do := range []script{
		opened(1), lives(1000), held(1, 1, 10, 20), held(2, 2, 30, 40), lost(25, 1), table(1, 1), write("a", 1, 10, 11), read("", 2, 32, 33), write("b", 0, 50, 51),
	} {
		do(b, c)
	}
	found, n := b.Violations()
	if want := (Counts{Tenures: 2, Losses: 1, Tables: 1, Calls: 2, Histories: 2, Generations: 2}); n != want || len(found) > 0 {
		t.Errorf("counted %+v, want %+v; found %v", n, want, found)
	}
}

// TestRecovery: faults stop after 100 s, and earlier leases have expired 10 s later.
func TestRecovery(t *testing.T) {
	const second = oracle.Time(time.Second)
	for _, test := range []struct {
		name    string
		story   []script
		took    time.Duration
		without int
	}{
		{"no owner", nil, 0, 1},
		{"not any more", []script{held(1, 1, 10, 99*second)}, 0, 1},
		{"not for long", []script{held(1, 1, 10, 109*second)}, 0, 1},
		{"without a gap", []script{held(1, 1, 10, 111*second)}, 0, 0},
		{"again, after a suspension", []script{held(1, 1, 10, 50*second), held(1, 1, 104*second, 111*second)}, 4 * time.Second, 0},
		{"soon", []script{held(1, 1, 10, 99*second), held(2, 2, 103*second, 110*second)}, 3 * time.Second, 0},
		{"once more, after a gap", []script{held(2, 2, 101*second, 102*second), held(1, 3, 105*second, 110*second)}, 5 * time.Second, 0},
		{"from one to another", []script{held(1, 1, 10, 102*second), held(2, 2, 102*second+100, 105*second), held(1, 3, 106*second, 120*second)}, 0, 0},
		{"too late", []script{held(1, 1, 10, 109*second), held(2, 2, 119*second, 120*second)}, 19 * time.Second, 0},
	} {
		b := New([]leasehold.Key{key}, stale, 0)
		for _, do := range test.story {
			do(b, nil)
		}
		if took, without := b.Recovery(100*second, 110*second); took != test.took || without != test.without {
			t.Errorf("%s: recovery took %d, %d keys have no owner, want %d and %d", test.name, took, without, test.took, test.without)
		}
	}
}

// TestUnanswered: every running caller needs an answer of every register.
func TestUnanswered(t *testing.T) {
	for _, test := range []struct {
		name  string
		story []script
		want  int
	}{
		{"not yet", []script{opened(1)}, 2},
		{"not any more", []script{read("", 1, 99, 105)}, 2},
		{"an unknown outcome", []script{write("a", 0, 101, 101)}, 2},
		{"one has", []script{read("", 1, 101, 102), read("", 1, 90, 103)}, 1},
		{"not another caller", []script{read("", 1, 101, 102), another(opened(1))}, 3},
		{"the caller has ended", []script{opened(1), func(_ *Book, c *Caller) { c.Gone() }}, 0},
	} {
		b := New([]leasehold.Key{key}, stale, 0)
		c := b.Caller("c1")
		for _, do := range test.story {
			do(b, c)
		}
		if got := b.Unanswered(100, []string{name, "key-1"}); got != test.want {
			t.Errorf("%s: %d are unanswered, want %d", test.name, got, test.want)
		}
	}
	b := New(nil, stale, 0)
	b.Lost(time.Second, 3)
	b.Vanished("after storm 1", 2)
	if found, _ := b.Violations(); len(found) != 2 || found[0].Invariant != "I6" || found[1].Invariant != "I2" {
		t.Errorf("found %v", found)
	}
}

func TestUnrecovered(t *testing.T) {
	b := New(nil, stale, 0)
	if b.Broken() {
		t.Error("Broken is true without a violation")
	}
	b.Unrecovered(3*time.Second, time.Second, 2)
	b.Unrecovered(2*time.Second, time.Second, 0)
	found, _ := b.Violations()
	if len(found) != 1 || found[0].Times != 2 || !strings.Contains(found[0].Text, "2 keys have no owner 3s after") || !b.Broken() {
		t.Errorf("found %v", found)
	}
}
