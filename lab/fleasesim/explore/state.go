package explore

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/lab/fleasesim"
	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

// A state is the state of the whole group. It is immutable: a step creates a new one, which shares unchanged
// parts.
type state struct {
	scenario *Scenario
	now      time.Duration // true time
	procs    [processes]*proc
	packets  []*packet // in flight, in the order in which they were sent; no two are equal
	acquired bool      // the last step acquired a lease

	detours, crashes, duplicates, tries, releases, ticks int8 // remaining
}

type proc struct {
	machine     *flease.Machine
	incarnation uint64
	held        bool
	lease       flease.Lease
	asked       bool
	hash        uint64
}

type packet struct {
	to        int
	envelope  flease.Envelope
	messages  []flease.Message
	reordered bool // reordered: later packets are delivered before it
	hash      uint64
}

const resource = "r"

// Begin returns a group whose processes have exchanged packets, and have removed the state of that exchange.
func (s *Scenario) Begin() (*state, error) {
	st := &state{scenario: s, detours: s.Detours, crashes: s.Crashes, duplicates: s.Duplicates, tries: s.Tries, releases: s.Releases, ticks: s.Ticks}
	for i := range st.procs {
		if err := st.start(i, uint64(i+1)<<8); err != nil {
			return nil, err
		}
	}
	st.now += 4 * lease
	for i := range st.procs {
		for _, call := range []func(*flease.Machine, flease.Time){
			func(m *flease.Machine, now flease.Time) { m.Advance(now) },
			func(m *flease.Machine, now flease.Time) { _ = m.Acquire(now, "warm") },
			func(m *flease.Machine, now flease.Time) { m.Release(now, "warm") },
		} {
			st.call(i, call)
			st.deliverAll()
		}
	}
	for range 100 {
		st.now += lease / 10
		for i := range st.procs {
			st.call(i, func(m *flease.Machine, now flease.Time) { m.Advance(now) })
		}
		st.deliverAll()
	}
	st.packets = nil
	for i, p := range st.procs {
		if !p.machine.Ready() || p.machine.Size() > 0 {
			return nil, fmt.Errorf("invalid initial state of process %d: ready %t, state of %d resources", i+1, p.machine.Ready(), p.machine.Size())
		}
	}
	return st, nil
}

func (st *state) deliverAll() {
	for range 100 {
		if len(st.packets) == 0 {
			return
		}
		st.deliver(0, false)
	}
}

func (st *state) start(i int, incarnation uint64) error {
	m, err := flease.New(st.time(i), flease.Config{
		Self: flease.Process(i + 1), Incarnation: incarnation, Peers: []flease.Process{1, 2, 3},
		Lease: lease, Epsilon: epsilon, Drift: drift, Rand: explorer.Constant(),
		Fresh: func(present uint64) uint64 { return present + 1<<32 },
	})
	if err != nil {
		return err
	}
	st.procs[i] = &proc{machine: m, incarnation: incarnation}
	st.collect(i)
	return nil
}

func (st *state) time(i int) flease.Time {
	c := &st.scenario.Clocks[i]
	return flease.Time{
		Mono: mono.Instant(float64(st.now) * c.Mono),
		Wall: flease.Wall(time.Hour + c.Ahead + time.Duration(float64(st.now)*c.Wall)),
	}
}

func (st *state) call(i int, do func(*flease.Machine, flease.Time)) {
	p := *st.procs[i]
	p.machine = p.machine.Clone()
	st.procs[i] = &p
	do(p.machine, st.time(i))
	st.collect(i)
}

func (st *state) collect(i int) {
	p := st.procs[i]
	for _, n := range p.machine.Notices() {
		switch {
		case n.Name != resource:
		case n.What == flease.Acquired || n.What == flease.Renewed:
			p.held, p.lease, p.asked = true, n.Lease, true
			st.acquired = st.acquired || n.What == flease.Acquired
		case n.What == flease.Lost:
			p.held, p.asked = false, false
		case n.What == flease.Released || n.What == flease.Refused || n.What == flease.Unreachable || n.What == flease.Disputed:
			p.asked = false
		}
	}
	p.machine.Flush(st.time(i), func(to flease.Process, e *flease.Envelope, msgs []flease.Message) {
		st.post(&packet{to: int(to) - 1, envelope: *e, messages: slices.Clone(msgs)})
	})
	b := p.machine.AppendState(nil)
	b = binary.AppendUvarint(b, p.incarnation)
	b = fmt.Appendf(b, "%t%t%v", p.held, p.asked, p.lease)
	p.hash = xxhash.Sum64(b)
}

// post adds a packet, unless an equal one is in flight.
func (st *state) post(l *packet) {
	e := &l.envelope
	var b []byte
	for _, n := range []uint64{uint64(l.to), uint64(e.From), e.Incarnation, e.To, uint64(e.Sent), uint64(e.Echo)} {
		b = binary.AppendUvarint(b, n)
	}
	for i := range l.messages {
		b = l.messages[i].AppendState(b)
	}
	l.hash = xxhash.Sum64(b)
	if slices.ContainsFunc(st.packets, func(o *packet) bool { return o.hash == l.hash }) {
		return
	}
	at := len(st.packets)
	if st.scenario.Detours == explorer.Unlimited { // their order does not matter
		at, _ = slices.BinarySearchFunc(st.packets, l.hash, func(o *packet, hash uint64) int { return cmp.Compare(o.hash, hash) })
	}
	st.packets = slices.Insert(slices.Clone(st.packets), at, l)
}

func (st *state) Hash() uint64 {
	b := binary.AppendUvarint(make([]byte, 0, 256), uint64(st.now))
	for _, p := range st.procs {
		b = binary.AppendUvarint(b, p.hash)
	}
	for _, n := range []int8{st.detours, st.crashes, st.duplicates, st.tries, st.releases, st.ticks} {
		b = append(b, byte(n))
	}
	for _, l := range st.packets {
		b = binary.LittleEndian.AppendUint64(b, l.hash)
		if l.reordered {
			b = append(b, 1)
		}
	}
	return xxhash.Sum64(b)
}

// Budget is part of the hash.
func (*state) Budget() uint64 { return 0 }

func (st *state) Figure(int) uint64 {
	if st.acquired {
		return 1
	}
	return 0
}

func (st *state) Line(step string) string { return fmt.Sprintf("%9.3fs  %s", st.now.Seconds(), step) }

// Broken returns a violation if more than one process holds the lease.
func (st *state) Broken() *explorer.Violation {
	var holders []int
	for i, p := range st.procs {
		if now := st.time(i); p.held && now.Mono < p.lease.Until.Mono && now.Wall <= p.lease.Until.Wall {
			holders = append(holders, i+1)
		}
	}
	if len(holders) < 2 {
		return nil
	}
	return &explorer.Violation{Invariant: fleasesim.L1Exclusive, Text: fmt.Sprintf("processes %v hold the lease at once", holders)}
}
