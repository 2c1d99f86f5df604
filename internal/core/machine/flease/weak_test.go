package flease_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// These tests cover known weak points of the paper, or of implementations of it.

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// A process is silent after its start for the lease and twice epsilon: a lease that its earlier
// incarnation accepted immediately before may have been written by a clock that is ahead, and be
// held by a clock that is behind.
func TestRecoveryIsLongEnough(t *testing.T) {
	w := newWorld(t, 3, func(c *flease.Config) { c.Drift = 1 })
	mb := w.start(2)
	w.pass(lease + 2*epsilon - 100*time.Millisecond)
	if mb.m.Ready() {
		t.Error("ready before the lease and twice epsilon have passed")
	}
	w.pass(200 * time.Millisecond)
	if !mb.m.Ready() {
		t.Error("not ready after the lease and twice epsilon")
	}
}

// A silent process does not reply.
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

// The only other acceptor of a lease loses its memory, and is ready too late to help another
// process to get the lease.
func TestAmnesiaDoesNotBreakALease(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.take(flease.KindRead, 3)
	w.settle()
	w.wantHolder("r", 1)
	w.start(2) // without memory
	w.acquire(3, "r")
	for w.now < 2*time.Hour && !w.holds(3, "r") {
		w.pass(100 * time.Millisecond)
		w.mail = slices.DeleteFunc(w.mail, func(l letter) bool { return l.to == 1 || l.e.From == 1 })
		w.settle()
		if w.holds(3, "r") && w.holds(1, "r") {
			t.Fatal("two processes hold it")
		}
	}
	w.wantHolder("r", 3)
}

// An acceptor counts once, however often it replies.
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
		t.Fatal("two of five promises count as a majority")
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

// Two processes that use the same id, and so the same ballots, do not both get the lease: a promise
// is to one of them. Other processes detect that there are two.
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
		one := w.holds(1, "r")
		w.members[1] = twin
		if one && w.holds(1, "r") {
			t.Fatal("both hold it")
		}
	}
	_, by2 := w.notice(2, flease.EqualIDs)
	_, by3 := w.notice(3, flease.EqualIDs)
	if !by2 && !by3 {
		t.Error("no process has detected two processes 1")
	}
}

func pick(yes bool, a, b *member) *member {
	if yes {
		return a
	}
	return b
}

// settleTwins delivers all messages, those to id 1 to both processes with this id.
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
	w.mail = nil // twins may exchange messages for ever
}

// The same ballot is promised to one process only, even if two use it.
func TestEqualBallots(t *testing.T) {
	w := newWorld(t, 3)
	read := func(incarnation uint64) flease.Kind {
		k := flease.Ballot{Interval: 1 << 40, Round: 1, Process: 1}
		e := &flease.Envelope{From: 1, Incarnation: incarnation, To: w.members[2].inc, Sent: w.time(2).Wall, Echo: w.time(2).Wall}
		w.members[2].m.Receive(w.time(2), e, []flease.Message{{Kind: flease.KindRead, Name: "r", Ballot: k}})
		w.collect(2)
		last := w.mail[len(w.mail)-1]
		w.mail = nil
		return last.msgs[0].Kind
	}
	first, again := read(w.members[1].inc), read(w.members[1].inc)
	w.now += time.Millisecond
	if other := read(4711); first != flease.KindPromise || again != flease.KindPromise || other != flease.KindReject {
		t.Errorf("replies %d, %d to one process and %d to another, want promises and a rejection", first, again, other)
	}
}

func TestMessageOfOwnID(t *testing.T) {
	w := newWorld(t, 3)
	w.members[1].m.Receive(w.time(1), &flease.Envelope{From: 1, Incarnation: 4711, To: w.members[1].inc, Sent: w.time(1).Wall}, nil)
	w.collect(1)
	if n := w.last(1, ""); n.What != flease.EqualIDs {
		t.Errorf("notice %+v, want that another process has its id", n)
	}
}

// The replies to a write may arrive after the end of the lease.
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
	w.now += lease + time.Millisecond // the process is paused
	for _, l := range accepts {
		w.deliver(l)
	}
	for _, n := range w.members[1].notices {
		if n.What == flease.Acquired {
			t.Fatalf("holder until %v at %v", n.Lease.Until, w.time(1))
		}
	}
}

// A proposer that finds a lease which has expired on its own clock, but within epsilon, waits.
// Monotonic clocks that are much too fast make no difference.
func TestEpsilonIsWaitedFor(t *testing.T) {
	w := newWorld(t, 3)
	w.members[1].off, w.members[2].off, w.members[3].off = -epsilon/2, epsilon/2, epsilon/2
	w.pass(100 * time.Millisecond)
	w.acquire(1, "r")
	w.settle()
	w.wantHolder("r", 1)
	cut := w.now
	for !w.holds(2, "r") {
		if w.now-cut > 15*time.Second {
			t.Fatal("no holder 15 s after its owner was partitioned")
		}
		w.members[2].fast += epsilon / 2
		w.members[3].fast += epsilon / 2
		w.pass(50 * time.Millisecond)
		w.try(2, "r")
		w.mail = slices.DeleteFunc(w.mail, func(l letter) bool { return l.to == 1 || l.e.From == 1 })
		w.settle()
		if w.holds(1, "r") && w.holds(2, "r") {
			t.Fatal("two processes hold it")
		}
	}
}

// Fences increase with every tenure of any process, also after a loss of all memories.
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

// A promise of an earlier incarnation of an acceptor, or a lost one, is void.
func TestPromisesDieWithTheirAcceptor(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.take(flease.KindRead, 3)
	w.settle2(flease.KindWrite) // 2 has promised; the write is in flight
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
		t.Error("a write without a promise is accepted")
	}
}

// settle2 delivers all letters but those of a kind.
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

// A process that has received only from other members may read from all members of the majority
// that accepted a lease.
func TestThirdMemberGetsTheHolder(t *testing.T) {
	w := newWorld(t, 3)
	w.acquire(1, "r")
	w.take(flease.KindRead, 3) // 3 does not have the lease
	w.settle()
	w.try(3, "r")
	w.settle()
	if n := w.want(3, "r", flease.Refused); n.Holder != 1 {
		t.Errorf("holder %d, want 1", n.Holder)
	}
}
