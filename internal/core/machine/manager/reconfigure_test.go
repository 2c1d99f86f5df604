package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// Timings that a namespace is given besides the paper's 60 seconds: a sixth of
// them and ten times them, each kept from others for a twelfth longer.
func shortTiming() protocol.Timing {
	t := protocol.PaperTiming()
	t.Lease, t.Renew = t.Lease/6, t.Renew/6
	return t
}

func longTiming() protocol.Timing {
	t := protocol.PaperTiming()
	t.Lease, t.Renew = 10*t.Lease, 10*t.Renew
	return t
}

// reconfigure gives the namespace another timing.
func (l *paperLeader) reconfigure(timing protocol.Timing) {
	l.step(manager.Reconfigured{Config: manager.Config{Timing: timing, Policy: partition.Even{}, Backoff: paperBackoff}})
}

func TestReconfiguredTellsOwners(t *testing.T) {
	l := newPaperLeader(t)
	a := l.join("a")
	l.reconfigure(shortTiming())
	a.say()
	if got := a.read(); got.Timing != shortTiming() || got.Namespace != paperNamespace || got.Leader != "m" {
		t.Errorf("an owner is told %+v", got)
	}
	l.wantHolder(0, "a", "after the change")
}

// keepAlive lets time pass in which of all owners only these speak.
func (l *paperLeader) keepAlive(d time.Duration, speak ...*paperOwner) {
	for range d / (500 * time.Millisecond) {
		l.advance(500 * time.Millisecond)
		for _, o := range speak {
			o.say()
			o.read()
		}
	}
}

// Who has been promised a long lease is waited for as long; who is heard after
// the change only as long as it was told then.
func TestShorterLeasesDoNotMoveDeadlinesUp(t *testing.T) {
	l := newPaperLeader(t)
	a, b, c := l.join("a"), l.join("b"), l.join("c")
	a.say() // for the last time
	a.read()
	l.keepAlive(5*time.Second, b, c)
	l.reconfigure(shortTiming())
	l.keepAlive(59500*time.Millisecond, b, c)
	l.wantHolder(0, "a", "before what a was promised is over")
	l.keepAlive(time.Second, b, c)
	l.wantHolder(0, "b", "after it")
	before := l.machine.Members()
	l.keepAlive(11*time.Second, c)
	if before != 2 || l.machine.Members() != 1 {
		t.Errorf("b was silent for longer than it was told: of %d owners %d are left", before, l.machine.Members())
	}
}

// What the leader says after the change promises the long time from a request
// that it accepted before: so it waits that long for it.
func TestLongerLeasesMoveDeadlinesOut(t *testing.T) {
	l := newPaperLeader(t)
	a := l.join("a")
	a.say()
	a.read()
	l.reconfigure(longTiming())
	b := l.introduce("b") // a is asked to give something back, unasked, and falls silent
	l.advance(0)
	if len(a.unread) == 0 {
		t.Fatal("a is told nothing")
	}
	told := a.read()
	if told.Timing != longTiming() || told.Echo != a.seq {
		t.Fatalf("a is told %+v, and has said %d", told, a.seq)
	}
	b.read()
	l.keepAlive(longTiming().Hold()-time.Second, b)
	l.wantHolder(0, "a", "as long as a may believe in it")
	l.keepAlive(2*time.Second, b)
	l.wantHolder(0, "b", "after that")
}

// Whatever else is changed does not give a dead owner more time.
func TestSameLeasesKeepDeadlines(t *testing.T) {
	l := newPaperLeader(t)
	l.join("a")
	b := l.join("b")
	for range 13 {
		l.keepAlive(5*time.Second, b)
		l.reconfigure(protocol.PaperTiming())
	}
	l.keepAlive(time.Second, b)
	l.wantHolder(0, "b", "after 66 seconds")
}

// A new policy takes effect at once.
func TestReconfiguredPolicy(t *testing.T) {
	l := newPaperLeader(t)
	l.join("a")
	l.join("b")
	l.wantHolder(middle, "b", "divided evenly")
	static := partition.Static{Slots: partition.Assignment{{Start: 0, Owner: "b"}, {Start: middle, Owner: "a"}}}
	l.step(manager.Reconfigured{Config: manager.Config{Timing: protocol.PaperTiming(), Policy: static}})
	l.settle()
	l.wantHolder(0, "b", "assigned")
	l.wantHolder(middle, "a", "assigned")
}

// What is kept for lookups is bounded by the new configuration at once.
func TestReconfiguredLog(t *testing.T) {
	l := newPaperLeader(t)
	l.join("a")
	l.join("b")
	kept := l.machine.Sizes().Log
	l.step(manager.Reconfigured{Config: manager.Config{Timing: protocol.PaperTiming(), Policy: partition.Even{}, Log: manager.LogLimits{Changes: 1}}})
	if got := l.machine.Sizes().Log; kept < 2 || got > 1 {
		t.Errorf("of %d changes %d are kept, want at most 1", kept, got)
	}
}

// A configuration that was never checked is our own mistake.
func TestPanicsOnBadReconfiguration(t *testing.T) {
	l := newPaperLeader(t)
	defer func() {
		if recover() == nil {
			t.Error("it goes on")
		}
	}()
	l.reconfigure(protocol.Timing{Lease: 1})
}

// A new leader waits for what it finds for as long as was ever promised.
func TestSuccessorWaitsForThePromise(t *testing.T) {
	l := newPaperLeader(t)
	l.join("a")
	state := &storage.State{Term: 2, Changes: l.log}
	short := func(promised time.Duration) func(*manager.Config) {
		return func(c *manager.Config) { c.Timing, c.Promised = shortTiming(), promised }
	}
	for _, c := range []struct {
		name     string
		promised time.Duration
		want     time.Duration
	}{
		{"a longer promise", paperHold, paperHold},
		{"a shorter promise", time.Second, shortTiming().Hold()},
		{"no promise", 0, shortTiming().Hold()},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := newPaperSuccessor(t, 2, state, short(c.promised))
			b := next.introduce("b")
			b.read()
			next.keepAlive(c.want-500*time.Millisecond, b)
			next.wantHolder(0, "a", "before the time is over")
			next.keepAlive(time.Second, b)
			next.wantHolder(0, "b", "when it is")
		})
	}
}

// The numbers of a namespace that was led before in the same term go on.
func TestFirstSeq(t *testing.T) {
	l := newPaperLeader(t, func(c *manager.Config) { c.Takeover.FirstSeq = 41 })
	a := l.introduce("a")
	if got := a.unread[0].Seq; got != 43 || l.machine.Seq() < got {
		t.Errorf("the second message has number %d, want 43; the newest is said to be %d", got, l.machine.Seq())
	}
}

// Empty means that the store knows that nobody has anything.
func TestEmpty(t *testing.T) {
	l := newPaperLeader(t)
	if !l.machine.Empty() {
		t.Error("a new namespace is not empty")
	}
	a := l.join("a")
	if l.machine.Empty() {
		t.Error("a holds everything, and it is empty")
	}
	l.holdUp = true
	a.leave()
	if l.machine.Empty() {
		t.Error("the store has not heard, and it is empty")
	}
	l.commit()
	if !l.machine.Empty() {
		t.Error("a has left, and it is not empty")
	}
	var granted []table.Change
	for _, c := range l.log {
		if c.Kind == table.Granted {
			granted = append(granted, c)
		}
	}
	m, err := manager.New(0, poolConfig(), 2, 1, &storage.State{Term: 2, Changes: granted})
	if err != nil {
		t.Fatal(err)
	}
	if m.Empty() {
		t.Error("a leader that has not begun has inherited nothing yet, and is empty")
	}
}
