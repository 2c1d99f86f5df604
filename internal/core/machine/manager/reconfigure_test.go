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

// Timings besides the paper's 60 seconds: a sixth of that and ten times that, each with a hold time of a twelfth
// more.
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

// reconfigure changes the timing of the namespace.
func (l *paperLeader) reconfigure(timing protocol.Timing) {
	l.step(manager.Reconfigured{Config: manager.Config{Timing: timing, Policy: partition.Even{}, Backoff: paperBackoff}})
}

func TestReconfiguredTimingIsSent(t *testing.T) {
	l := newPaperLeader(t)
	a := l.join("a")
	l.reconfigure(shortTiming())
	a.send()
	if got := a.read(); got.Timing != shortTiming() || got.Namespace != paperNamespace || got.Leader != "m" {
		t.Errorf("an owner got %+v", got)
	}
	l.wantHolder(0, "a", "after the change")
}

// keepAlive lets time pass in which only the given owners send requests.
func (l *paperLeader) keepAlive(d time.Duration, active ...*paperOwner) {
	for range d / (500 * time.Millisecond) {
		l.advance(500 * time.Millisecond)
		for _, o := range active {
			o.send()
			o.read()
		}
	}
}

// An owner that was promised a long lease keeps it. After the change, an owner gets the shorter time with its next
// reply.
func TestShorterLeasesDoNotMoveDeadlinesUp(t *testing.T) {
	l := newPaperLeader(t)
	a, b, c := l.join("a"), l.join("b"), l.join("c")
	a.send() // its last request
	a.read()
	l.keepAlive(5*time.Second, b, c)
	l.reconfigure(shortTiming())
	l.keepAlive(59500*time.Millisecond, b, c)
	l.wantHolder(0, "a", "before the lease of a expires")
	l.keepAlive(time.Second, b, c)
	l.wantHolder(0, "b", "after it")
	before := l.machine.Members()
	l.keepAlive(11*time.Second, c)
	if before != 2 || l.machine.Members() != 1 {
		t.Errorf("b was silent for longer than its lease: of %d owners %d are left", before, l.machine.Members())
	}
}

// A message after the change promises the longer time from a request that was accepted before: so the leader waits
// that long.
func TestLongerLeasesMoveDeadlinesOut(t *testing.T) {
	l := newPaperLeader(t)
	a := l.join("a")
	a.send()
	a.read()
	l.reconfigure(longTiming())
	b := l.introduce("b") // a gets an unsolicited recall, and falls silent
	l.advance(0)
	if len(a.unread) == 0 {
		t.Fatal("a gets no message")
	}
	reply := a.read()
	if reply.Timing != longTiming() || reply.Echo != a.seq {
		t.Fatalf("a got %+v, and has sent %d requests", reply, a.seq)
	}
	b.read()
	l.keepAlive(longTiming().Hold()-time.Second, b)
	l.wantHolder(0, "a", "before the longer lease of a expires")
	l.keepAlive(2*time.Second, b)
	l.wantHolder(0, "b", "after that")
}

// Other changes of the configuration do not extend the deadline of a dead owner.
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

// The new limits of the change log apply at once.
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

// A configuration that was not validated is a bug.
func TestPanicsOnBadReconfiguration(t *testing.T) {
	l := newPaperLeader(t)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	l.reconfigure(protocol.Timing{Lease: 1})
}

// A new leader waits for the longest time that was ever promised.
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
		{"promised longer than the timing", paperHold, paperHold},
		{"promised shorter than the timing", time.Second, shortTiming().Hold()},
		{"nothing promised", 0, shortTiming().Hold()},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := newPaperSuccessor(t, 2, state, short(c.promised))
			b := next.introduce("b")
			b.read()
			next.keepAlive(c.want-500*time.Millisecond, b)
			next.wantHolder(0, "a", "before the deadline")
			next.keepAlive(time.Second, b)
			next.wantHolder(0, "b", "after the deadline")
		})
	}
}

// Sequence numbers continue if the namespace was led in the same term before.
func TestFirstSeq(t *testing.T) {
	l := newPaperLeader(t, func(c *manager.Config) { c.Takeover.FirstSeq = 41 })
	a := l.introduce("a")
	if got := a.unread[0].Seq; got != 43 || l.machine.Seq() < got {
		t.Errorf("the second message has sequence number %d, want 43; Seq is %d", got, l.machine.Seq())
	}
}

// Empty means that no owner has a lease, and the store has recorded that.
func TestEmpty(t *testing.T) {
	l := newPaperLeader(t)
	if !l.machine.Empty() {
		t.Error("a new namespace is not empty")
	}
	a := l.join("a")
	if l.machine.Empty() {
		t.Error("a holds everything, and Empty is true")
	}
	l.holdUp = true
	a.leave()
	if l.machine.Empty() {
		t.Error("the release is not committed, and Empty is true")
	}
	l.commit()
	if !l.machine.Empty() {
		t.Error("a has left, and Empty is false")
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
		t.Error("Empty is true before the first step")
	}
}
