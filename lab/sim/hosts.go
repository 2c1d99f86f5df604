package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A host runs one process at a time. The process can be stopped, can crash and can be restarted.
type host struct {
	*world
	endpoint int32
	label    string
	alive    bool
	died     int64  // true time at which the last process here ended
	epoch    uint32 // number of processes that ran here
	clock    engine.Clock[mono.Instant]
	// mate is the other host of the same process, in embedded worlds; else nil.
	mate *host

	stopped int64 // true time at which it continues, 0 if it is not stopped
	asleep  bool  // suspended, so that its clock stands still
	inbox   []any // messages that arrive while it is stopped

	wake  mono.Instant // next wake of the machine
	alarm int64        // true time of the earliest timer for that; 0 if there is none

	// deliver passes a message to the process, or nil when time has passed.
	deliver func(what any)
}

// inboxLimit bounds the inbox of a stopped process, like a socket buffer.
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

// arm sets a timer for the next wake of the machine: at most slightly early, sometimes late. It keeps an
// earlier timer, since an early wake is harmless.
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

// fire handles an expired timer. It can be early, because timers are not postponed; then the machine is
// usually not woken, and sometimes it is.
func (h *host) fire() {
	h.alarm = 0
	if h.stopped != 0 {
		return // resume wakes it
	}
	if h.now() < h.wake && !h.Chance(8) {
		h.arm(h.wake)
		return
	}
	h.Mix(uint64(h.Now), uint64(h.endpoint))
	h.deliver(nil)
}

func (h *host) receive(e *engine.Event) {
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
	h.stopOne(d, asleep)
	if h.mate != nil {
		h.mate.stopOne(d, asleep)
	}
}

func (h *host) stopOne(d time.Duration, asleep bool) {
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

// unstop continues a stopped host. If it was suspended, the process first receives slept; then it receives
// its inbox.
func (h *host) unstop() {
	asleep := h.asleep
	h.stopped, h.asleep = 0, false
	if asleep {
		h.clock.Run(h.Now, h.nemesis.drawRate())
	}
	h.Printf("%s continues", h.label)
	epoch, inbox := h.epoch, h.inbox
	h.inbox = nil
	if asleep {
		h.deliver(slept{})
	} else if h.Chance(2) {
		h.deliver(nil) // the timer fires before the inbox is read
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

// beats returns the beats of a host that starts. Most worlds have none, because beats reduce the number of
// interleavings.
func (w *world) beats(now mono.Instant) mono.Beats {
	if w.Seed%4 != 0 {
		return mono.Beats{}
	}
	return mono.BeatsAt(now)
}
