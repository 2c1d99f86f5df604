package flease_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/machine/flease"
)

// These are the points at which the paper, or implementations of it, are weak.

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// Whoever starts is silent for the lease and twice epsilon: the lease that it may
// have accepted a moment ago was perhaps written by a clock that is ahead, and
// its end is believed in by one that is behind.
func TestRecoveryIsLongEnough(t *testing.T) {
	w := newWorld(t, 3, func(c *flease.Config) { c.Drift = 1 })
	mb := w.start(2)
	w.pass(lease + 2*epsilon - 100*time.Millisecond)
	if mb.m.Ready() {
		t.Error("it takes part before the lease and twice epsilon have passed")
	}
	w.pass(200 * time.Millisecond)
	if !mb.m.Ready() {
		t.Error("it does not take part after the lease and twice epsilon")
	}
}

// While it is silent it answers nothing.
func TestRecoveryIsSilent(t *testing.T) {
	w := newWorld(t, 3)
	w.start(2)
	w.start(3)
	w.acquire(1, "r")
	w.run(5 * time.Second)
	w.wantHolder("r")
	w.run(30 * time.Second)
	w.wantHolder("r", 1)
}

// The only other acceptor of a lease forgets it, and comes back too late to help
// anyone else to it.
func TestAmnesiaDoesNotBreakALease(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.take(flease.KindRead, 3)
	w.settle()
	w.wantHolder("r", 1)
	w.start(2) // it has forgotten
	w.acquire(3, "r")
	for w.now < 2*time.Hour && !w.believes(3, "r") {
		w.pass(100 * time.Millisecond)
		w.mail = slices.DeleteFunc(w.mail, func(l letter) bool { return l.to == 1 || l.e.From == 1 })
		w.settle()
		if w.believes(3, "r") && w.believes(1, "r") {
			t.Fatal("two believe in it")
		}
	}
	w.wantHolder("r", 3)
}

// An acceptor counts once, however often it answers.
func TestEachAcceptorCountsOnce(t *testing.T) {
	w := newWorld(t, 5)
	w.acquire(1, "r")
	reads := w.take(flease.KindRead, 2, 3, 4, 5)
	w.deliver(reads[0])
	promises := w.take(flease.KindPromise, 1)
	for range 3 {
		w.deliver(promises[0])
	}
	if writes := w.take(flease.KindWrite, 2, 3, 4, 5); len(writes) > 0 {
		t.Fatal("two of five are taken for a majority of promises")
	}
	w.deliver(reads[1])
	w.deliver(w.take(flease.KindPromise, 1)[0])
	writes := w.take(flease.KindWrite, 2, 3)
	w.deliver(writes[0])
	accepts := w.take(flease.KindAccept, 1)
	for range 3 {
		w.deliver(accepts[0])
	}
	w.wantHolder("r")
	w.deliver(writes[1])
	w.settle()
	w.wantHolder("r", 1)
}

// Two processes that use the same id, and so the same ballot, do not both get it:
// a promise is to one of them.
func TestEqualIDs(t *testing.T) {
	w := newWorld(t, 3)
	twin := func() *flease.Machine {
		cfg := w.cfg
		w.incs++
		cfg.Self, cfg.Incarnation, cfg.Rand = 1, w.incs, newRand()
		m, err := flease.New(w.time(1), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	a, b := w.members[1].m, twin()
	w.run(30 * time.Second)
	b.Advance(w.time(1))
	_ = b.Acquire(w.time(1), "r")
	w.acquire(1, "r")
	// Process 2 hears both, and process 3 hears both, one the one first and one the
	// other.
	_ = a
	var fromTwin []letter
	b.Flush(w.time(1), func(to flease.Process, e *flease.Envelope, msgs []flease.Message) {
		e.To = w.members[to].inc // as if it had been greeted
		fromTwin = append(fromTwin, letter{to, *e, slices.Clone(msgs)})
	})
	for _, l := range fromTwin {
		w.deliver(l)
	}
	w.settle()
	// The twin would have to be told of promises by 2 and 3: they have taken it
	// for a new incarnation of process 1, and void what the old one says.
	if w.believes(1, "r") {
		for _, n := range b.Notices() {
			if n.What == flease.Acquired {
				t.Fatal("both have it")
			}
		}
	}
}

func TestHearingOneself(t *testing.T) {
	w := newWorld(t, 3)
	w.members[1].m.Receive(w.time(1), &flease.Envelope{From: 1, Incarnation: 4711, To: w.members[1].inc, Sent: w.time(1).Wall}, nil)
	w.collect(1)
	if n := w.last(1, ""); n.What != flease.EqualIDs {
		t.Errorf("it says %+v, want that another process has its id", n)
	}
}

// The answers to a write may come so late that the lease is over.
func TestExpiryIsCheckedAgainAfterTheWrite(t *testing.T) {
	w := newWorld(t, 3, func(c *flease.Config) { c.Renew = lease / 2 })
	w.acquire(1, "r")
	for _, l := range w.take(flease.KindRead, 2, 3) {
		w.deliver(l)
	}
	for _, l := range w.take(flease.KindPromise, 1) {
		w.deliver(l)
	}
	for _, l := range w.take(flease.KindWrite, 2, 3) {
		w.deliver(l)
	}
	accepts := w.take(flease.KindAccept, 1)
	w.now += lease + time.Millisecond // it is paused: nothing runs
	for _, l := range accepts {
		w.deliver(l)
	}
	for _, n := range w.members[1].notices {
		if n.What == flease.Acquired {
			t.Fatalf("it takes itself for the holder until %v at %v", n.Lease.Until, w.time(1))
		}
	}
}

// A proposer that finds a lease which is over on its own clock, but within
// epsilon, waits.
func TestEpsilonIsWaitedFor(t *testing.T) {
	w := newWorld(t, 3, func(c *flease.Config) { c.Drift = 1 })
	w.members[1].off, w.members[2].off = -epsilon/2, epsilon/2
	w.members[3].off = epsilon / 2
	for _, id := range w.cfg.Peers {
		w.members[id].m.Advance(w.time(id))
	}
	w.acquire(1, "r")
	w.settle()
	w.wantHolder("r", 1)
	w.acquire(2, "r")
	for range 200 {
		w.pass(100 * time.Millisecond)
		w.mail = slices.DeleteFunc(w.mail, func(l letter) bool { return l.to == 1 || l.e.From == 1 })
		w.settle()
		if w.believes(1, "r") && w.believes(2, "r") {
			t.Fatal("two believe in it")
		}
	}
	w.wantHolder("r", 2)
}

// Fences rise with every tenure, of whomever, also when nobody remembers.
func TestFencesRise(t *testing.T) {
	w := newWorld(t, 3)
	var last uint64
	for round := range 12 {
		id := flease.Process(round%3 + 1)
		w.acquire(id, "r")
		w.run(time.Second)
		fence := w.last(id, "r").Lease.Fence
		if fence <= last {
			t.Fatalf("fence %d of process %d after %d", fence, id, last)
		}
		last = fence
		w.release(id, "r")
		w.settle()
		if round%4 == 3 {
			for _, id := range w.cfg.Peers {
				w.start(id)
			}
			w.run(13 * time.Second)
		}
	}
}

// A promise to an earlier incarnation of an acceptor, or one that it has
// forgotten, is worth nothing.
func TestPromisesDieWithTheirAcceptor(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.take(flease.KindRead, 3)
	w.settle2(flease.KindWrite) // 2 has promised; the write is under way
	write := w.take(flease.KindWrite, 2)
	if len(write) != 1 {
		t.Fatalf("%d writes to 2, want 1", len(write))
	}
	w.start(2)
	w.run(13 * time.Second)
	w.mail = nil
	for _, l := range write {
		w.deliver(l)
	}
	if accepts := w.take(flease.KindAccept, 1); len(accepts) > 0 {
		t.Error("it accepts a write that it never promised")
	}
}

// settle2 delivers all but letters of a kind.
func (w *world) settle2(but flease.Kind) {
	var kept []letter
	for len(w.mail) > 0 {
		l := w.mail[0]
		w.mail = w.mail[1:]
		if len(l.msgs) > 0 && l.msgs[0].Kind == but {
			kept = append(kept, l)
			continue
		}
		w.deliver(l)
	}
	w.mail = kept
}

// The members of a majority that has given a lease may all be asked again by
// someone who has only heard the others.
func TestTheThirdIsToldTheTruth(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.take(flease.KindRead, 3) // 3 knows nothing
	w.settle()
	w.try(3, "r")
	w.settle()
	if n := w.want(3, "r", flease.Refused); n.Holder != 1 {
		t.Errorf("%d has it, want 1", n.Holder)
	}
}
