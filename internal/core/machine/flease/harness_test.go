package flease_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

const (
	lease   = 10 * time.Second
	epsilon = time.Second
	drift   = mono.Drift(1.2)
)

// A letter is an envelope in flight.
type letter struct {
	to   flease.Process
	e    flease.Envelope
	msgs []flease.Message
}

// A member is one process, with adjustable clocks.
type member struct {
	id  flease.Process
	m   *flease.Machine
	off time.Duration // offset of its wall clock from true time

	fast time.Duration // offset of its monotonic clock

	inc     uint64
	notices []flease.Notice
}

// A world is a set of processes, and their messages in flight.
type world struct {
	t       *testing.T
	cfg     flease.Config
	now     time.Duration // true time
	members map[flease.Process]*member
	mail    []letter
	incs    uint64
	ref     flease.Ref // ref in the last promise of process 2
}

// newWorld starts n processes, and waits for the end of their recovery.
func newWorld(t *testing.T, n int, change ...func(*flease.Config)) *world {
	t.Helper()
	w := &world{t: t, members: make(map[flease.Process]*member), now: time.Hour}
	w.cfg = flease.Config{Lease: lease, Epsilon: epsilon, Drift: drift}
	for i := range n {
		w.cfg.Peers = append(w.cfg.Peers, flease.Process(i+1))
	}
	for _, c := range change {
		c(&w.cfg)
	}
	for _, id := range w.cfg.Peers {
		w.start(id)
	}
	w.pass(13 * time.Second)
	for _, id := range w.cfg.Peers {
		if !w.members[id].m.Ready() {
			t.Fatalf("process %d is not ready after 13 s", id)
		}
	}
	w.greet()
	return w
}

// greet exchanges greetings between all processes.
func (w *world) greet() {
	w.t.Helper()
	for _, id := range w.cfg.Peers {
		w.try(id, "greeting")
		w.settle()
		w.members[id].m.Release(w.time(id), "greeting")
		w.settle()
	}
	for _, mb := range w.members {
		mb.notices = nil
	}
}

func (w *world) start(id flease.Process) *member {
	w.t.Helper()
	w.incs++
	mb := &member{id: id, inc: w.incs}
	if before := w.members[id]; before != nil {
		mb.off, mb.fast = before.off, before.fast
	}
	w.members[id] = mb
	cfg := w.cfg
	cfg.Self, cfg.Incarnation, cfg.Rand = id, w.incs, rand.New(rand.NewPCG(uint64(id), w.incs))
	m, err := flease.New(w.time(id), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	mb.m = m
	return mb
}

func (w *world) time(id flease.Process) flease.Time {
	return flease.Time{Mono: mono.Instant(w.now + w.members[id].fast), Wall: flease.Wall(w.now + w.members[id].off)}
}

// pass advances time in steps of 100 ms, without delivering messages.
func (w *world) pass(d time.Duration) {
	for end := w.now + d; w.now < end; {
		w.now = min(end, w.now+100*time.Millisecond)
		for _, id := range w.cfg.Peers {
			w.members[id].m.Advance(w.time(id))
			w.collect(id)
		}
	}
}

// run advances time, and delivers all messages.
func (w *world) run(d time.Duration) {
	for end := w.now + d; w.now < end; {
		w.pass(min(100*time.Millisecond, end-w.now))
		w.settle()
	}
}

// collect takes the messages and notices of a process.
func (w *world) collect(id flease.Process) {
	mb := w.members[id]
	mb.m.Flush(w.time(id), func(to flease.Process, e *flease.Envelope, msgs []flease.Message) {
		w.mail = append(w.mail, letter{to, *e, slices.Clone(msgs)})
	})
	mb.notices = append(mb.notices, mb.m.Notices()...)
}

func (w *world) acquire(id flease.Process, name string) {
	w.t.Helper()
	if err := w.members[id].m.Acquire(w.time(id), name); err != nil {
		w.t.Fatal(err)
	}
	w.collect(id)
}

func (w *world) try(id flease.Process, name string) {
	w.t.Helper()
	if err := w.members[id].m.Try(w.time(id), name); err != nil {
		w.t.Fatal(err)
	}
	w.collect(id)
}

func (w *world) release(id flease.Process, name string) {
	w.members[id].m.Release(w.time(id), name)
	w.collect(id)
}

// deliver delivers a letter.
func (w *world) deliver(l letter) {
	w.members[l.to].m.Receive(w.time(l.to), &l.e, l.msgs)
	w.collect(l.to)
}

// settle delivers all messages, and those that they cause, in order.
func (w *world) settle() {
	w.t.Helper()
	for i := 0; len(w.mail) > 0; i++ {
		if i > 10000 {
			w.t.Fatal("the processes never stop sending")
		}
		l := w.mail[0]
		w.mail = w.mail[1:]
		w.deliver(l)
	}
}

// take removes the letters in flight to one of the processes whose first message has this kind, and
// returns them.
func (w *world) take(kind flease.Kind, to ...flease.Process) []letter {
	var taken []letter
	w.mail = slices.DeleteFunc(w.mail, func(l letter) bool {
		if !slices.Contains(to, l.to) || len(l.msgs) == 0 || l.msgs[0].Kind != kind {
			return false
		}
		taken = append(taken, l)
		return true
	})
	return taken
}

// last returns the last notice of a process about a resource.
func (w *world) last(id flease.Process, name string) flease.Notice {
	for _, n := range slices.Backward(w.members[id].notices) {
		if n.Name == name {
			return n
		}
	}
	return flease.Notice{}
}

// holds reports whether a process holds a lease, as its shell would decide.
func (w *world) holds(id flease.Process, name string) bool {
	n := w.last(id, name)
	now := w.time(id)
	return (n.What == flease.Acquired || n.What == flease.Renewed) && now.Mono < n.Lease.Until.Mono && now.Wall <= n.Lease.Until.Wall
}

func (w *world) wantHolder(name string, want ...flease.Process) {
	w.t.Helper()
	var have []flease.Process
	for _, id := range w.cfg.Peers {
		if w.holds(id, name) {
			have = append(have, id)
		}
	}
	if !slices.Equal(have, want) {
		w.t.Fatalf("at %v %v hold %s, want %v", w.now, have, name, want)
	}
}

func (w *world) want(id flease.Process, name string, what flease.Notable) flease.Notice {
	w.t.Helper()
	n := w.last(id, name)
	if n.What != what {
		w.t.Fatalf("last notice of process %d is %q of %s, want %q; all: %+v", id, n.What, name, what, w.members[id].notices)
	}
	return n
}
