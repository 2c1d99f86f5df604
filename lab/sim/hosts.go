package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A host is a place where a process runs, is stopped, dies and is started
// again.
type host struct {
	*world
	endpoint int32
	label    string
	alive    bool
	died     int64  // when the last process here ended
	epoch    uint32 // counts the processes that ran here
	clock    engine.Clock[mono.Instant]

	stopped int64 // true time until which it is stopped, 0 if it runs
	asleep  bool  // it is suspended, not merely stopped
	inbox   []any // what arrived meanwhile

	wake  mono.Instant // when the machine wants to be woken
	alarm int64        // true time of the earliest timer set for that; 0 if there is none

	// deliver hands a message, or with nil the passing of time, to the process.
	deliver func(what any)
}

// inboxLimit bounds what a stopped process finds when it goes on: a socket
// buffer is finite too.
const inboxLimit = 64

func (w *world) addHost(label string) *host {
	h := &host{world: w, endpoint: int32(len(w.hosts)), label: label}
	w.hosts = append(w.hosts, h)
	return h
}

func (h *host) now() mono.Instant { return h.clock.At(h.Now) }

func (h *host) at() *host { return h }

func (h *host) runs() bool { return h.alive && h.stopped == 0 }

func (h *host) start() mono.Instant {
	h.alive = true
	h.epoch++
	h.stopped, h.asleep, h.inbox = 0, false, nil
	h.alarm = 0
	h.clock = engine.NewClock(h.Now, mono.Instant(h.Random.Int64N(int64(1000*time.Hour))), h.nemesis.drawRate())
	h.Printf("%s starts, its clock at %.3f of true time", h.label, float64(h.clock.Rate())/float64(engine.TrueRate))
	return h.now()
}

func (h *host) kill() {
	h.alive, h.died = false, h.Now
	h.stopped, h.asleep, h.inbox = 0, false, nil
}

// arm makes sure that a host is woken at its machine's next deadline: never
// early by much, sometimes late. An alarm that is already set earlier is left
// alone, since waking for nothing is harmless.
func (h *host) arm(wake mono.Instant) {
	h.wake = wake
	if wake == mono.Never {
		return
	}
	at := max(h.clock.When(wake), h.Now)
	if h.alarm != 0 && h.alarm <= at || at > h.end+int64(time.Hour) {
		return
	}
	at += int64(h.Below(lateTimers))
	if h.nemesis.starving {
		at += int64(h.Below(starvedTimers))
	}
	h.alarm = at
	h.Later(time.Duration(at-h.Now), h.endpoint, h.epoch, timer{})
}

// ring is a timer going off. It may be early, because alarms are not moved
// back; then the machine is mostly left alone, and sometimes woken for nothing.
func (h *host) ring() {
	h.alarm = 0
	if h.stopped != 0 {
		return // going on will catch up
	}
	if h.now() < h.wake && !h.Chance(8) {
		h.arm(h.wake)
		return
	}
	h.Mix(uint64(h.Now), uint64(h.endpoint))
	h.deliver(nil)
}

func (h *host) arrive(e *engine.Event) {
	if h.stopped != 0 {
		if len(h.inbox) < inboxLimit {
			h.inbox = append(h.inbox, e.What)
		}
		return
	}
	h.Mix(uint64(h.Now), uint64(h.endpoint)|1<<32)
	if h.Traced() {
		from := ""
		if e.From != engine.Nowhere {
			from = h.hosts[e.From].label + ": "
		}
		h.Printf("%s <- %s%s", h.label, from, describe(e.What))
	}
	h.deliver(e.What)
}

func (h *host) stop(d time.Duration, asleep bool) {
	if !h.alive || h.stopped != 0 {
		return
	}
	h.stopped = h.Now + int64(d)
	h.asleep = asleep
	if asleep {
		h.clock.Run(h.Now, 0)
	}
	h.Later(d, h.endpoint, h.epoch, resume{})
}

// goOn lets a stopped host run again: first it learns that it slept, if it
// did, then it finds what has arrived.
func (h *host) goOn() {
	asleep := h.asleep
	h.stopped, h.asleep = 0, false
	if asleep {
		h.clock.Run(h.Now, h.nemesis.drawRate())
	}
	h.Printf("%s goes on", h.label)
	epoch, inbox := h.epoch, h.inbox
	h.inbox = nil
	if asleep {
		h.deliver(slept{})
	} else if h.Chance(2) {
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

// beats are those of a host that starts. There are none in most worlds: on beats fewer
// interleavings happen.
func (w *world) beats(now mono.Instant) mono.Beats {
	if w.Seed%4 != 0 {
		return mono.Beats{}
	}
	return mono.BeatsAt(now)
}
