package fleasesim

import (
	"fmt"
	"math"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A process has two clocks, and a machine while it lives.
type process struct {
	*world
	index int32
	id    flease.Process
	label string
	peers []flease.Process

	mono engine.Clock[mono.Instant]
	wall engine.Clock[flease.Wall]

	machine     *flease.Machine // nil while it is dead
	incarnation uint64
	epoch       uint32 // rises when it dies
	gone        bool   // it stays dead
	alarm       int64  // true time at which the machine is called, MaxInt64 if it is not
	paused      int64  // until when it is stopped; 0 if it runs
	inbox       []*packet
	greeted     mono.Instant // when it greeted the others last, before it took part
	stakes      []stake      // by resource
	role        role
	send        func(flease.Process, *flease.Envelope, []flease.Message)
}

// maxInbox bounds what waits for a process that is stopped, as a socket does.
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
	p.settle(now)
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

// die ends the process: what it knew is gone.
func (p *process) die() {
	if p.machine == nil {
		return
	}
	p.Printf("%s dies", p.label)
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

// goOn ends a pause. What has arrived meanwhile is handled first, or the clock
// is looked at first: both happen.
func (p *process) goOn() {
	p.paused = 0
	mail := p.inbox
	p.inbox = nil
	if p.Chance(2) {
		p.ring()
	}
	for _, m := range mail {
		p.receive(m)
	}
	p.ring()
}

func (p *process) receive(mail *packet) {
	switch {
	case p.machine == nil:
		return
	case p.paused != 0:
		if len(p.inbox) < maxInbox {
			p.inbox = append(p.inbox, mail)
		}
		return
	}
	now := p.time()
	if p.Traced() {
		p.describe(p, mail)
	}
	if answer, ok := p.machine.Receive(now, &mail.envelope, mail.messages); ok {
		p.answer(p, mail.from, &answer)
	}
	p.settle(now)
}

func (p *process) ring() {
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
	p.settle(now)
}

func (p *process) greets() mono.Instant {
	switch {
	case p.machine.Ready() || p.machine.Retired() || !p.greeting:
		return mono.Never
	case p.greeted == 0:
		return 0
	}
	return p.greeted.Add(4 * p.machine.GreetEvery()) // a few times are enough, and leave more worlds to be run
}

// settle carries out what the machine wants after it was called.
func (p *process) settle(now flease.Time) {
	for _, n := range p.machine.Notices() {
		p.oracle.noticed(p, &n)
	}
	p.machine.Flush(now, p.send)
	p.oracle.stepped(p)
	p.reschedule()
}

// reschedule sets the alarm. One that is too early is left as it is: it does no
// harm.
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
