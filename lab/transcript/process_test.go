package transcript

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A process is anything with a clock.
type process interface {
	self() *host
	boot(options map[string]string) error
	wake()                         // time has passed
	slept()                        // its clock stood still
	receive(from string, what any) // a message has arrived
	show()                         // print what it knows
	quote(to string, m any) string // a message from it, for the transcript
}

// A host is what all processes have: a name, a clock, an alarm and dice.
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

// local is what the process's clock shows now.
func (h *host) local() mono.Instant { return h.clock.at(h.now) }

// due is the true time of the alarm.
func (h *host) due() time.Duration {
	if !h.alive || h.asleep || h.alarm == mono.Never {
		return math.MaxInt64
	}
	return max(h.now, h.clock.when(h.alarm))
}

// A clock shows origin at the true time since, and runs at rate from there.
type clock struct {
	origin mono.Instant
	since  time.Duration
	rate   float64
}

func (c clock) at(t time.Duration) mono.Instant {
	return c.origin.Add(time.Duration(math.Round(float64(t-c.since) * c.rate)))
}

// when is the first true time, to the microsecond, at which the clock shows i
// or more.
func (c clock) when(i mono.Instant) time.Duration {
	t := c.since + time.Duration(float64(i.Sub(c.origin))/c.rate)
	t = t.Truncate(time.Microsecond)
	for c.at(t) < i {
		t += time.Microsecond
	}
	return t
}

// dice give all random numbers of one process the same place between 0 and 1,
// so that the script can say how long a backoff is.
type dice struct{ next uint64 }

func newDice(f float64) *dice { return &dice{uint64(f*(1<<32)) << 32} }

// Uint64 moves by a hair each time: rand draws again until it likes a number.
func (d *dice) Uint64() uint64 {
	d.next += 1 << 32
	return d.next
}

func (h *host) rand() *rand.Rand { return rand.New(h.dice) }

// marked dice never draw the number of another process: tickets are drawn, and
// no two may be the same.
type marked struct {
	*dice
	mark uint64
}

func (m marked) Uint64() uint64 { return m.dice.Uint64() | m.mark }
