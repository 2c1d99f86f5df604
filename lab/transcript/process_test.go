package transcript

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A process is a process with a clock.
type process interface {
	self() *host
	boot(options map[string]string) error
	wake()                         // advances the machine
	slept()                        // the clock stood still
	receive(from string, what any) // handles a message
	show()                         // prints the state
	quote(to string, m any) string // formats a message of the process for the transcript
}

// A host is the common part of all processes: a name, a clock, a timer and dice.
type host struct {
	*world
	name   string
	alive  bool
	asleep bool
	clock  clock
	alarm  mono.Instant
	dice   *dice
}

func (h *host) self() *host { return h }

// local returns the present reading of the process's clock.
func (h *host) local() mono.Instant { return h.clock.at(h.now) }

// due returns the true time of the timer.
func (h *host) due() time.Duration {
	if !h.alive || h.asleep || h.alarm == mono.Never {
		return math.MaxInt64
	}
	return max(h.now, h.clock.when(h.alarm))
}

// A clock has the reading origin at the true time since, and advances with rate from there.
type clock struct {
	origin mono.Instant
	since  time.Duration
	rate   float64
}

func (c clock) at(t time.Duration) mono.Instant {
	return c.origin.Add(time.Duration(math.Round(float64(t-c.since) * c.rate)))
}

// when returns the first true time, to the microsecond, at which the reading is i or later.
func (c clock) when(i mono.Instant) time.Duration {
	t := c.since + time.Duration(float64(i.Sub(c.origin))/c.rate)
	t = t.Truncate(time.Microsecond)
	for c.at(t) < i {
		t += time.Microsecond
	}
	return t
}

// dice make all random numbers of one process the same fraction of their range, so that the script determines
// backoffs.
type dice struct{ next uint64 }

func newDice(f float64) *dice { return &dice{uint64(f*(1<<32)) << 32} }

// Uint64 increments the number minimally each time: rand rejects some numbers and draws again.
func (d *dice) Uint64() uint64 {
	d.next += 1 << 32
	return d.next
}

func (h *host) rand() *rand.Rand { return rand.New(h.dice) }

// marked dice of different processes draw different numbers: tickets are drawn, and must be unique.
type marked struct {
	*dice
	mark uint64
}

func (m marked) Uint64() uint64 { return m.dice.Uint64() | m.mark }
