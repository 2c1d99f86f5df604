package fleasesim

import (
	"fmt"
	"math"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A process has two clocks, and a machine while it runs.
type process struct {
	*world
	index int32
	id    flease.Process
	label string
	peers []flease.Process

	mono engine.Clock[mono.Instant]
	wall engine.Clock[flease.Wall]

	machine     *flease.Machine // nil while it is down
	incarnation uint64
	epoch       uint32 // incremented by each crash
	gone        bool   // it stays down
	alarm       int64  // true time of the timer, MaxInt64 if there is none
	paused      int64  // true time until which it is stopped; 0 if it runs
	inbox       []*packet
	greeted     mono.Instant // when it last sent greetings, before it took part
	stakes      []stake      // by resource
	role        role
	send        func(flease.Process, *flease.Envelope, []flease.Message)
}

// maxInbox limits the packets that wait for a stopped process, like a socket buffer.
const maxInbox = 200

func (w *world) addProcess(id flease.Process, peers []flease.Process) {
	p := &process{
		world: w, index: int32(len(w.processes)), id: id, label: fmt.Sprintf("p%d", id), peers: peers,
		stakes: make([]stake, len(w.resources)), alarm: math.MaxInt64,
	}
	if len(w.byID[id]) > 0 {
		p.label += "'"
	}
	p.send = func(to flease.Process, e *flease.Envelope, msgs []flease.Message) { w.send(p, to, e, msgs) }
	p.mono = engine.NewClock(w.Now, mono.Instant(w.Random.Int64N(int64(time.Hour))), engine.TrueRate)
	p.wall = engine.NewClock(w.Now, flease.Wall(w.Now), engine.TrueRate)
	w.processes = append(w.processes, p)
	w.byID[id] = append(w.byID[id], p)
}

func (p *process) time() flease.Time {
	return flease.Time{Mono: p.mono.At(p.Now), Wall: p.wall.At(p.Now)}
}

func (p *process) runs() bool { return p.machine != nil && p.paused == 0 }

func (p *process) boot() {
	if p.machine != nil || p.gone {
		return
	}
	p.incarnation = p.Random.Uint64() | 1
	p.mono.Set(p.Now, mono.Instant(p.Random.Int64N(int64(time.Hour))))
	now := p.time()
	p.machine = engine.Must(flease.New(now, flease.Config{
		Self: p.id, Incarnation: p.incarnation, Peers: p.peers, Group: p.group,
		Lease: lease, Epsilon: p.epsilon, Drift: drift, Max: len(p.resources),
		Rand: p.NewRand(), Fresh: p.another,
	}))
	p.greeted = 0
	p.Printf("%s starts, incarnation %04x", p.label, p.incarnation>>48)
	p.handleOutput(now)
}

func (p *process) another(uint64) uint64 {
	p.incarnation = p.Random.Uint64() | 1
	return p.incarnation
}

func (p *process) group(name string) []flease.Process {
	if r := p.resource(name); r != nil {
		return r.members
	}
	return nil
}

// die ends the process, which loses its memory.
func (p *process) die() {
	if p.machine == nil {
		return
	}
	p.Printf("%s crashes", p.label)
	p.machine = nil
	p.epoch++
	p.alarm, p.paused, p.inbox = math.MaxInt64, 0, nil
	for i := range p.stakes {
		p.stakes[i] = stake{given: p.stakes[i].given}
	}
}

// stop stops the process for a while. Its clocks run on.
func (p *process) stop(d time.Duration) {
	if !p.runs() {
		return
	}
	p.paused = p.Now + int64(d)
	p.Later(d, p.index, p.epoch, resume{})
}

// unpause ends a pause. Either the packets that have arrived or the timer is handled first.
func (p *process) unpause() {
	p.paused = 0
	inbox := p.inbox
	p.inbox = nil
	if p.Chance(2) {
		p.fire()
	}
	for _, m := range inbox {
		p.receive(m)
	}
	p.fire()
}

func (p *process) receive(in *packet) {
	switch {
	case p.machine == nil:
		return
	case p.paused != 0:
		if len(p.inbox) < maxInbox {
			p.inbox = append(p.inbox, in)
		}
		return
	}
	now := p.time()
	if p.Traced() {
		p.describe(p, in)
	}
	if answer, ok := p.machine.Receive(now, &in.envelope, in.messages); ok {
		p.answer(p, in.from, &answer)
	}
	p.handleOutput(now)
}

func (p *process) fire() {
	if !p.runs() {
		return
	}
	p.alarm = math.MaxInt64
	now := p.time()
	p.machine.Advance(now)
	if p.greets() <= now.Mono {
		p.greeted = now.Mono
		p.machine.Greet()
	}
	p.handleOutput(now)
}

func (p *process) greets() mono.Instant {
	switch {
	case p.machine.Ready() || p.machine.Retired() || !p.greeting:
		return mono.Never
	case p.greeted == 0:
		return 0
	}
	return p.greeted.Add(4 * p.machine.GreetEvery()) // a few are enough, and keep the worlds small
}

// handleOutput executes the machine's notices and packets after a call.
func (p *process) handleOutput(now flease.Time) {
	for _, n := range p.machine.Notices() {
		p.oracle.noticed(p, &n)
	}
	p.machine.Flush(now, p.send)
	p.oracle.checkSize(p)
	p.reschedule()
}

// reschedule sets the timer. It keeps an earlier one, since an early wake is harmless.
func (p *process) reschedule() {
	if !p.runs() {
		return
	}
	at := p.mono.When(min(p.machine.Wake(p.time()), p.greets()))
	if at == math.MaxInt64 {
		return
	}
	at = max(at, p.Now) + int64(p.nemesis.lateness())
	if at >= p.alarm {
		return
	}
	p.alarm = at
	p.Later(time.Duration(at-p.Now), p.index, p.epoch, alarm{})
}
