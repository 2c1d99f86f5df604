package flease_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
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

// Two processes that use the same id, and so the same ballots, do not both get it:
// a promise is to one of them. Others notice that there are two.
func TestEqualIDs(t *testing.T) {
	w := newWorld(t, 3)
	first := w.members[1]
	twin := w.start(1)
	for range 400 {
		w.now += 100 * time.Millisecond
		for _, mb := range []*member{first, twin, w.members[2], w.members[3]} {
			w.members[1] = pick(mb.id == 1, mb, twin)
			if mb.id == 1 {
				_ = mb.m.Acquire(w.time(1), "r")
			}
			mb.m.Advance(w.time(mb.id))
			w.collect(mb.id)
		}
		w.settleTwins(first, twin)
		w.members[1] = first
		one := w.believes(1, "r")
		w.members[1] = twin
		if one && w.believes(1, "r") {
			t.Fatal("both have it")
		}
	}
	_, by2 := w.heard(2, flease.EqualIDs)
	_, by3 := w.heard(3, flease.EqualIDs)
	if !by2 && !by3 {
		t.Error("nobody has noticed that there are two processes 1")
	}
}

func pick(yes bool, a, b *member) *member {
	if yes {
		return a
	}
	return b
}

// settleTwins delivers all mail, to both processes with id 1 what is for it.
func (w *world) settleTwins(twins ...*member) {
	for range 200 {
		if len(w.mail) == 0 {
			return
		}
		l := w.mail[0]
		w.mail = w.mail[1:]
		if l.to != 1 {
			w.deliver(l)
			continue
		}
		for _, mb := range twins {
			w.members[1] = mb
			w.deliver(l)
		}
	}
	w.mail = nil // twins may talk for ever
}

// The same ballot is promised to one process only, even if two use it.
func TestEqualBallots(t *testing.T) {
	w := newWorld(t, 3)
	ask := func(incarnation uint64) flease.Kind {
		k := flease.Ballot{Interval: 1 << 40, Round: 1, Process: 1}
		e := &flease.Envelope{From: 1, Incarnation: incarnation, To: w.members[2].inc, Sent: w.time(2).Wall, Echo: w.time(2).Wall}
		w.members[2].m.Receive(w.time(2), e, []flease.Message{{Kind: flease.KindRead, Name: "r", Ballot: k}})
		w.collect(2)
		last := w.mail[len(w.mail)-1]
		w.mail = nil
		return last.msgs[0].Kind
	}
	first, again := ask(w.members[1].inc), ask(w.members[1].inc)
	w.now += time.Millisecond
	if other := ask(4711); first != flease.KindPromise || again != flease.KindPromise || other != flease.KindReject {
		t.Errorf("answers %d, %d to one process and %d to another, want promises and a rejection", first, again, other)
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
// epsilon, waits. Monotonic clocks that run much too fast make no difference.
func TestEpsilonIsWaitedFor(t *testing.T) {
	w := newWorld(t, 3)
	w.members[1].off, w.members[2].off, w.members[3].off = -epsilon/2, epsilon/2, epsilon/2
	w.pass(100 * time.Millisecond)
	w.acquire(1, "r")
	w.settle()
	w.wantHolder("r", 1)
	cut := w.now
	for !w.believes(2, "r") {
		if w.now-cut > 15*time.Second {
			t.Fatal("nobody has it 15 s after its owner was cut off")
		}
		w.members[2].fast += epsilon / 2
		w.members[3].fast += epsilon / 2
		w.pass(50 * time.Millisecond)
		w.try(2, "r")
		w.mail = slices.DeleteFunc(w.mail, func(l letter) bool { return l.to == 1 || l.e.From == 1 })
		w.settle()
		if w.believes(1, "r") && w.believes(2, "r") {
			t.Fatal("two believe in it")
		}
	}
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
