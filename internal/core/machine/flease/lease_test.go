package flease_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

func TestOneOfThreeGetsIt(t *testing.T) {
	w := newWorld(t, 3)
	for _, id := range w.cfg.Peers {
		w.acquire(id, "r")
	}
	w.run(time.Second)
	held := 0
	for _, id := range w.cfg.Peers {
		if w.holds(id, "r") {
			held++
		}
	}
	if held != 1 {
		t.Fatalf("%d processes hold it, want 1", held)
	}
}

func TestRenewedUntilReleased(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.settle()
	fence := w.want(1, "r", flease.Acquired).Lease.Fence
	w.acquire(2, "r")
	for range 60 {
		w.run(time.Second)
		w.wantHolder("r", 1)
	}
	if n := w.want(1, "r", flease.Renewed); n.Lease.Fence != fence {
		t.Errorf("the fence is %d, want %d: it is the same tenure", n.Lease.Fence, fence)
	}
}

// A renewal is one message to each member, and one reply.
func TestRenewalIsOneRoundTrip(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.settle()
	for len(w.mail) == 0 {
		w.pass(10 * time.Millisecond)
	}
	writes := w.take(flease.KindWrite, 2, 3)
	if len(writes) != 2 || len(w.mail) != 0 {
		t.Fatalf("%d writes and %d other letters, want 2 and none", len(writes), len(w.mail))
	}
	w.deliver(writes[0])
	w.settle()
	w.want(1, "r", flease.Renewed)
}

// A renewal never ends earlier than the lease that it renews, although the owner's clock was set
// back in between: the earlier end was reported to others, and the owner relies on it.
func TestRenewalDoesNotEndSooner(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.settle()
	until := w.want(1, "r", flease.Acquired).Lease.Until.Wall
	for range 5 {
		w.members[1].off -= epsilon * 9 / 10 // each time too little to be detected
		w.pass(100 * time.Millisecond)
	}
	for len(w.mail) == 0 {
		w.pass(10 * time.Millisecond)
		if w.time(1).Wall.Add(lease) > until {
			t.Fatal("the renewal is too late for this test")
		}
	}
	for _, l := range w.take(flease.KindWrite, 2, 3) {
		if got := l.msgs[0].Value.Until; got < until {
			t.Errorf("renewed until %v, and held until %v", got, until)
		}
	}
}

func TestTryReportsTheHolder(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.settle()
	w.try(2, "r")
	w.settle()
	n := w.want(2, "r", flease.Refused)
	if n.Holder != 1 || n.Fence != w.want(1, "r", flease.Acquired).Lease.Fence {
		t.Errorf("holder %+v, want 1 with its fence", n)
	}
}

func TestTryWithoutAMajority(t *testing.T) {
	w := newWorld(t, 3)
	w.try(1, "r")
	w.pass(5 * time.Second)
	w.want(1, "r", flease.Unreachable)
	w.mail = nil
	w.pass(time.Minute)
	if len(w.mail) > 0 {
		t.Errorf("messages after the bid has ended: %+v", w.mail)
	}
}

func TestReleaseHandsOverAtOnce(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.settle()
	first := w.want(1, "r", flease.Acquired).Lease.Fence
	w.acquire(2, "r")
	w.run(time.Second)
	w.release(1, "r")
	w.run(200 * time.Millisecond)
	w.want(1, "r", flease.Released)
	w.wantHolder("r", 2)
	if second := w.want(2, "r", flease.Acquired).Lease.Fence; second <= first {
		t.Errorf("fence %d after %d: want a higher one", second, first)
	}
}

// Others have begun later rounds, so the owner waits before it tries to renew again. A release in
// this state is effective.
func TestReleaseBetweenTwoRounds(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.settle()
	for len(w.mail) == 0 {
		w.pass(10 * time.Millisecond)
	}
	for range 2 { // the renewal, and the whole round that follows
		mail := w.mail
		w.mail = nil
		for _, l := range mail {
			ballot, ref := l.msgs[0].Ballot, l.msgs[0].From
			e := flease.Envelope{From: l.to, Incarnation: l.e.To, To: l.e.Incarnation, Sent: w.time(l.to).Wall}
			w.deliver(letter{1, e, []flease.Message{{Kind: flease.KindReject, To: ref, Ballot: ballot, Written: ballot}}})
		}
	}
	if len(w.mail) > 0 {
		t.Fatalf("the bid does not wait: %+v", w.mail)
	}
	w.release(1, "r")
	w.settle()
	w.want(1, "r", flease.Released)
	w.try(3, "r")
	w.settle()
	w.want(3, "r", flease.Acquired)
}

// Messages that an owner sent before the release do not undo it.
func TestReleaseIsNotUndone(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.settle()
	w.pass(4 * time.Second)
	renewals := w.take(flease.KindWrite, 2, 3)
	w.release(1, "r")
	w.settle()
	for _, l := range renewals {
		w.deliver(l)
	}
	w.settle()
	w.want(1, "r", flease.Released)
	w.try(2, "r")
	w.settle()
	w.want(2, "r", flease.Acquired)
}

// The lease of a dead owner is taken over when it has certainly expired, although others keep
// querying it.
func TestTakeover(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.settle()
	w.acquire(2, "r")
	died := w.now
	for !w.holds(2, "r") && !w.holds(3, "r") {
		if w.now-died > 14*time.Second {
			t.Fatal("no holder 14 s after the death of the owner")
		}
		w.pass(100 * time.Millisecond)
		w.try(3, "r")
		for len(w.mail) > 0 { // all but messages to or from the dead process
			l := w.mail[0]
			w.mail = w.mail[1:]
			if l.to != 1 && l.e.From != 1 {
				w.deliver(l)
			}
		}
		if w.holds(1, "r") && (w.holds(2, "r") || w.holds(3, "r")) {
			t.Fatal("two processes hold it")
		}
	}
	if took := w.now - died; took < 11*time.Second {
		t.Errorf("taken over after %v, want 11 s at least", took)
	}
}

func TestManyGroups(t *testing.T) {
	groups := func(name string) []flease.Process {
		var n int
		if _, err := fmt.Sscanf(name, "g%d", &n); err != nil {
			return []flease.Process{1, 2, 3, 4, 5}
		}
		p := func(i int) flease.Process { return flease.Process((n+i)%5 + 1) }
		return []flease.Process{p(0), p(1), p(2)}
	}
	w := newWorld(t, 5, func(c *flease.Config) { c.Group = groups })
	for n := range 500 {
		name := fmt.Sprintf("g%d", n)
		if err := w.members[flease.Process((n+3)%5+1)].m.Acquire(w.time(1), name); err == nil {
			t.Fatalf("a process that is not a member may bid for %s", name)
		}
		w.acquire(groups(name)[n%3], name)
	}
	w.run(time.Second)
	for n := range 500 {
		name := fmt.Sprintf("g%d", n)
		w.wantHolder(name, groups(name)[n%3])
	}
}

// Expired resources are dropped, and their fences still increase.
func TestDropExpired(t *testing.T) {
	w := newWorld(t, 3)
	for n := range 100 {
		w.acquire(1, fmt.Sprint(n))
	}
	w.settle()
	fence := w.want(1, "7", flease.Acquired).Lease.Fence
	for n := range 100 {
		w.release(1, fmt.Sprint(n))
	}
	w.settle()
	w.run(time.Minute)
	for _, id := range w.cfg.Peers {
		if n := w.members[id].m.Size(); n > 0 {
			t.Errorf("process %d has %d resources after a minute, want none", id, n)
		}
	}
	for _, id := range w.cfg.Peers { // also if all clocks are wrong by the same amount
		w.members[id].off = -time.Hour
		w.members[id].m.Advance(w.time(id))
	}
	w.acquire(2, "7")
	w.settle()
	if again := w.want(2, "7", flease.Acquired).Lease.Fence; again <= fence {
		t.Errorf("fence %d after %d: want a higher one", again, fence)
	}
}

func TestFull(t *testing.T) {
	w := newWorld(t, 3, func(c *flease.Config) { c.Max = 3 })
	var err error
	for n := range 10 {
		err = w.members[1].m.Acquire(w.time(1), fmt.Sprint(n))
	}
	if err == nil {
		t.Fatal("the limit of 3 is not enforced")
	}
}

func TestConfig(t *testing.T) {
	good := func() flease.Config {
		return flease.Config{Self: 1, Incarnation: 1, Peers: []flease.Process{1, 2, 3}, Lease: lease, Epsilon: epsilon, Drift: drift, Rand: newRand()}
	}
	for name, spoil := range map[string]func(*flease.Config){
		"epsilon as long as the lease": func(c *flease.Config) { c.Epsilon = lease },
		"no epsilon":                   func(c *flease.Config) { c.Epsilon = 0 },
		"no peers":                     func(c *flease.Config) { c.Peers = nil },
		"equal ids":                    func(c *flease.Config) { c.Peers = []flease.Process{1, 2, 2} },
		"process 0":                    func(c *flease.Config) { c.Peers = []flease.Process{0, 1, 2} },
		"no self":                      func(c *flease.Config) { c.Self = 0 },
		"no incarnation":               func(c *flease.Config) { c.Incarnation = 0 },
		"a drift below 1":              func(c *flease.Config) { c.Drift = 0.5 },
		"one renewal":                  func(c *flease.Config) { c.Renew = lease },
		"too many in a group": func(c *flease.Config) {
			for i := range 70 {
				c.Peers = append(c.Peers, flease.Process(i+10))
			}
		},
	} {
		cfg := good()
		spoil(&cfg)
		if _, err := flease.New(flease.Time{}, cfg); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
	if _, err := flease.New(flease.Time{}, good()); err != nil {
		t.Error(err)
	}
}

func TestGroupOfUnknownMembers(t *testing.T) {
	w := newWorld(t, 3)
	cfg := w.cfg
	cfg.Self, cfg.Incarnation, cfg.Rand = 1, 99, newRand()
	for name, group := range map[string][]flease.Process{"empty": nil, "unknown member": {1, 9}, "equal ids": {1, 1}} {
		cfg.Group = func(string) []flease.Process { return group }
		m, err := flease.New(w.time(1), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Acquire(w.time(1), "r"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A waiting process reports the holder, although it does not have the lease as an acceptor.
func TestLookOfAWaiter(t *testing.T) {
	w := newWorld(t, 3)
	if err := w.members[3].m.Watch(w.time(3), "r", true); err != nil {
		t.Fatal(err)
	}
	w.acquire(1, "r")
	w.take(flease.KindRead, 3) // 3 does not have the lease
	w.settle()
	if n := w.members[3].m.Look(w.time(3), "r"); n.Holder != 0 || !n.Unsure {
		t.Errorf("before the query: %+v", n)
	}
	w.acquire(3, "r")
	w.settle()
	if n := w.want(3, "r", flease.Changed); n.Holder != 1 || n.Unsure {
		t.Errorf("while waiting: %+v", n)
	}
}
