package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A street has a leader and real owners, which talk to each other over a network that takes a
// while. A message for a session goes to whoever has last spoken in it, as it does where
// the newest stream is a session's.
type street struct {
	t      *testing.T
	random *rand.Rand
	now    mono.Instant
	events engine.Timeline[func()]

	leader *manager.Machine
	timer  uint64
	houses []*house
	last   map[leasehold.Session]*house
	copies int // times that the leader noticed
}

// A house is a process of an owner.
type house struct {
	*street
	index   int
	machine *owner.Machine
	timer   uint64
	lag     time.Duration // of its clock
	life    []moment
	gone    bool
}

// A moment is something that happened to a process; a nil event is the passing of time.
type moment struct {
	at    mono.Instant
	event owner.Event
}

const copiedNamespace = "copied"

func copiedHolder(i int) *table.Holder {
	h := &table.Holder{Owner: leasehold.OwnerID(fmt.Sprintf("server-%d", i)), Addr: "10.0.0.1:7000", Weight: 1}
	copy(h.Session[:], fmt.Sprintf("session-%08d", i))
	return h
}

func newStreet(t *testing.T, seed uint64) *street {
	s := &street{t: t, random: rand.New(rand.NewPCG(seed, 1)), last: make(map[leasehold.Session]*house)}
	m, err := manager.New(0, manager.Config{Namespace: copiedNamespace, Self: "m1", Rand: rand.New(rand.NewPCG(1, 2))}, 1, mono.Never, &storage.State{})
	if err != nil {
		t.Fatal(err)
	}
	s.leader = m
	s.lead(m.Advance(0))
	return s
}

func (s *street) after(d time.Duration, f func()) { s.events.Add(int64(s.now.Add(d)), f) }

// way is how long a message takes.
func (s *street) way() time.Duration {
	return time.Millisecond + time.Duration(s.random.Int64N(int64(30*time.Millisecond)))
}

// lead does what the leader wants done.
func (s *street) lead(actions []manager.Action, wake mono.Instant) {
	for _, a := range actions {
		switch a := a.(type) {
		case manager.Send:
			reply := a.Reply
			to := s.last[reply.Session]
			s.after(s.way(), func() { to.happen(owner.Reply{LeaseReply: reply}) })
		case manager.Commit:
			s.after(s.way(), func() { s.lead(s.leader.Step(s.now, manager.Committed{Outcome: storage.Done})) })
		case manager.Note:
			if a.What == manager.NoteCopy {
				s.copies++
			}
		}
	}
	s.timer++
	if mine := s.timer; wake != mono.Never {
		s.after(max(0, wake.Sub(s.now)), func() {
			if mine == s.timer {
				s.lead(s.leader.Advance(s.now))
			}
		})
	}
}

// build starts an owner.
func (s *street) build(i int) *house {
	h := &house{street: s, index: i}
	h.begin(s.now)
	h.happen(nil)
	return h
}

func (h *house) begin(at mono.Instant) {
	m, err := owner.New(at, owner.Config{Namespace: copiedNamespace, Holder: copiedHolder(h.index), Rand: rand.New(rand.NewPCG(uint64(h.index), 2))})
	if err != nil {
		h.t.Fatal(err)
	}
	h.machine = m
	h.houses = append(h.houses, h)
}

// copied is what becomes of a snapshot of a process that is started a while after it was taken. Its clock
// knows nothing of that while. A machine has no life but what has happened to it.
func (h *house) copied(later time.Duration) *house {
	c := &house{street: h.street, index: h.index, lag: later}
	c.begin(h.life[0].at)
	for _, m := range h.life {
		c.step(m)
	}
	c.life = append(c.life, h.life...)
	h.after(later, func() { c.happen(nil) })
	return c
}

func (h *house) clock() mono.Instant { return h.now.Add(-h.lag) }

func (h *house) step(m moment) ([]owner.Action, mono.Instant) {
	if m.event == nil {
		return h.machine.Advance(m.at)
	}
	return h.machine.Step(m.at, m.event)
}

func (h *house) happen(e owner.Event) {
	if h.gone {
		return
	}
	m := moment{h.clock(), e}
	h.life = append(h.life, m)
	actions, wake := h.step(m)
	for _, a := range actions {
		if send, ok := a.(owner.Send); ok {
			r := send.Request
			h.after(h.way(), func() {
				h.last[r.Holder.Session] = h
				h.lead(h.leader.Step(h.now, manager.Request{LeaseRequest: r}))
			})
		}
	}
	h.timer++
	if mine := h.timer; wake != mono.Never {
		h.after(max(0, wake.Sub(h.clock())), func() {
			if mine == h.timer {
				h.happen(nil)
			}
		})
	}
}

// pass lets events happen, for a while, and looks after each.
func (s *street) pass(d time.Duration, look func()) {
	over := false
	s.after(d, func() { over = true })
	for !over {
		at, f := s.events.Next()
		s.now = mono.Instant(at)
		f()
		look()
	}
}

// has reports whether a process believes in a lease for a key.
func (h *house) has(k leasehold.Key) bool {
	v := h.machine.View()
	return !h.gone && h.clock() < v.Until && slices.ContainsFunc(v.Leases, func(l leasehold.Lease) bool { return l.Range.Contains(k) })
}

// A snapshot of an owner's computer is started beside it, at once or after a while: two processes
// with one session, which know nothing of each other. What the copy had, it believes in until its lease
// is over on its clock, and nothing but a fence helps against that. A lease later no key has two owners any more,
// whatever the two say; and if both go on at once the leader notices. When one of them is stopped the other gets on.
func TestCopiedOwner(t *testing.T) {
	const lease = 10 * time.Second
	keys := []leasehold.Key{0, 1 << 61, 3 << 61, 5 << 61, 7 << 61, ^leasehold.Key(0)}
	for seed := range uint64(50) {
		s := newStreet(t, seed)
		a, b := s.build(0), s.build(1)
		nobody := func() {}
		s.pass(5*time.Second, nobody)
		s.pass(time.Duration(s.random.Int64N(int64(5*time.Second))), nobody)
		later := []time.Duration{0, time.Second, time.Minute}[seed%3]
		c := a.copied(later)
		s.pass(later, nobody)
		began := s.now
		look := func() {
			for _, k := range keys {
				// At first either may be taken for the other, and be renewed.
				mixed := s.now.Sub(began) < 2*lease
				if b.has(k) && a.has(k) || b.has(k) && c.has(k) && (!mixed || later == 0) || a.has(k) && c.has(k) && !mixed {
					t.Fatalf("seed %d: %v after a copy was started, key %v is held twice: by the first %t, its copy %t, another %t",
						seed, s.now.Sub(began), k, a.has(k), c.has(k), b.has(k))
				}
			}
		}
		s.pass(10*time.Minute, look)
		if later == 0 && s.copies == 0 {
			t.Fatalf("seed %d: that there are two was not noticed", seed)
		}
		a.gone = true
		s.pass(time.Minute, look)
		held := 0
		for _, k := range keys {
			if b.has(k) || c.has(k) {
				held++
			}
		}
		if held != len(keys) || len(c.machine.View().Leases) == 0 {
			t.Errorf("seed %d: a minute after one was stopped, the other holds %v, and %d of %d keys have an owner", seed, c.machine.View().Leases, held, len(keys))
		}
	}
}
