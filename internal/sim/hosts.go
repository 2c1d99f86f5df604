package sim

import (
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/internal/mono"
)

// must is for configurations that the simulator makes itself.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// newRand gives a machine randomness of its own, so that what one draws does
// not depend on what another does.
func (w *world) newRand() *rand.Rand { return rand.New(rand.NewPCG(w.random.Uint64(), 1)) }

// A host is a place where a process runs, is stopped, dies and is started
// again.
type host struct {
	endpoint int32
	label    string
	alive    bool
	died     int64  // when the last process here ended
	epoch    uint32 // counts the processes that ran here
	clock    clock

	stopped int64 // true time until which it is stopped, 0 if it runs
	asleep  bool  // it is suspended, not merely stopped
	inbox   []any // what arrived meanwhile

	wake  mono.Instant // when the machine wants to be woken
	alarm int64        // true time of the earliest timer set for that; 0 if none

	// deliver hands a message, or with nil the passing of time, to the process.
	deliver func(what any)
}

// inboxLimit bounds what a stopped process finds when it goes on: a socket
// buffer is finite too.
const inboxLimit = 64

func (w *world) addHost(label string) *host {
	h := &host{endpoint: int32(len(w.hosts)), label: label}
	w.hosts = append(w.hosts, h)
	return h
}

// start begins a new process on a host, with a clock of its own.
func (w *world) start(h *host) mono.Instant {
	h.alive = true
	h.epoch++
	h.stopped, h.asleep, h.inbox = 0, false, nil
	h.alarm = 0
	h.clock = clock{since: w.now, base: mono.Instant(w.random.Int64N(int64(1000 * time.Hour))), rate: w.nemesis.drawRate()}
	w.trace.printf(w.now, "%s starts, its clock at %.3f of true time", h.label, float64(h.clock.rate)/float64(trueRate))
	return h.clock.at(w.now)
}

// kill ends the process on a host.
func (w *world) kill(h *host) {
	h.alive, h.died = false, w.now
	h.stopped, h.asleep, h.inbox = 0, false, nil
}

// arm makes sure that a host is woken at its machine's next deadline: never
// early by much, sometimes late. An alarm that is already set earlier is left
// alone, since waking for nothing is harmless.
func (w *world) arm(h *host, wake mono.Instant) {
	h.wake = wake
	if wake == mono.Never {
		return
	}
	at := max(h.clock.when(wake), w.now)
	if h.alarm != 0 && h.alarm <= at || at > w.end+int64(time.Hour) {
		return
	}
	at += int64(w.below(lateTimers))
	if w.nemesis.starving {
		at += int64(w.below(starvedTimers))
	}
	h.alarm = at
	w.later(time.Duration(at-w.now), h.endpoint, h.epoch, timer{})
}

// ring is a timer going off. It may be early, because alarms are not moved
// back; then the machine is mostly left alone, and sometimes woken for nothing.
func (w *world) ring(h *host) {
	h.alarm = 0
	if h.stopped != 0 {
		return // going on will catch up
	}
	if h.clock.at(w.now) < h.wake && !w.chance(8) {
		w.arm(h, h.wake)
		return
	}
	w.trace.mix(uint64(w.now), uint64(h.endpoint))
	h.deliver(nil)
}

// arrive is a message reaching a host.
func (w *world) arrive(h *host, e *event) {
	if h.stopped != 0 {
		if len(h.inbox) < inboxLimit {
			h.inbox = append(h.inbox, e.what)
		}
		return
	}
	w.trace.mix(uint64(w.now), uint64(h.endpoint)|1<<32)
	if w.trace.text != nil {
		from := ""
		if e.from != none {
			from = w.hosts[e.from].label + ": "
		}
		w.trace.printf(w.now, "%s <- %s%s", h.label, from, describe(e.what))
	}
	h.deliver(e.what)
}

// stop halts a host for a while.
func (w *world) stop(h *host, d time.Duration, asleep bool) {
	if !h.alive || h.stopped != 0 {
		return
	}
	h.stopped = w.now + int64(d)
	h.asleep = asleep
	if asleep {
		h.clock.run(w.now, 0)
	}
	w.later(d, h.endpoint, h.epoch, resume{})
}

// goOn lets a stopped host run again: first it learns that it slept, if it
// did, then it finds what has arrived.
func (w *world) goOn(h *host) {
	asleep := h.asleep
	h.stopped, h.asleep = 0, false
	if asleep {
		h.clock.run(w.now, w.nemesis.drawRate())
	}
	w.trace.printf(w.now, "%s goes on", h.label)
	epoch, inbox := h.epoch, h.inbox
	h.inbox = nil
	if asleep {
		h.deliver(slept{})
	} else if w.chance(2) {
		h.deliver(nil) // the timer is first
	}
	for _, what := range inbox {
		if h.alive && h.epoch == epoch {
			h.deliver(what)
		}
	}
	if h.alive && h.epoch == epoch {
		h.deliver(nil)
	}
}
