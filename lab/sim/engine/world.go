package engine

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// An Event is an event at an instant of true time. What determines its effect. It belongs to an endpoint of
// the network, or to Nowhere.
type Event struct {
	At    int64  // true time, in nanoseconds
	From  int32  // the endpoint that sent it, or Nowhere
	To    int32  // the endpoint, or Nowhere
	Epoch uint32 // of a timer: it is void if the process that set it has ended
	What  any
}

// Nowhere is the endpoint of events that are not addressed to a process.
const Nowhere int32 = -1

// An Invariant is a condition that always holds, by its name in reports.
type Invariant = string

// NoCrash: no machine panics.
const NoCrash Invariant = "crash"

// A Violation is an invariant that did not hold.
type Violation struct {
	Invariant Invariant     `json:"invariant"`
	At        time.Duration `json:"at"` // true time since the start of the world
	Text      string        `json:"text"`
}

func (v *Violation) String() string {
	return fmt.Sprintf("%s violated at %v: %s", v.Invariant, v.At, v.Text)
}

// A World is the common part of simulated worlds. Simulators embed it.
type World struct {
	Result
	Random *rand.Rand
	Now    int64 // true time
	Queue  Timeline[Event]
	Net    Network

	start int64
	text  io.Writer // nil without a trace
}

// Init prepares the world of a seed, which begins at a true time. It writes a trace
// to text, if that is not nil.
func (w *World) Init(seed uint64, start int64, text io.Writer) {
	w.Seed, w.Now, w.start, w.text = seed, start, start, text
	w.Random = rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	w.Hash = Hash(0xcbf29ce484222325 ^ seed)
	w.Net.world = w
	w.Counts = newCounts()
}

// Below returns a random duration below d.
func (w *World) Below(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.Random.Int64N(int64(d)))
}

// Chance returns true with probability 1/n.
func (w *World) Chance(n int) bool { return w.Random.IntN(n) == 0 }

// Pick returns a random one of some values.
func Pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// NewRand returns a source of randomness for a machine, which is independent of the draws of other machines.
func (w *World) NewRand() *rand.Rand { return rand.New(rand.NewPCG(w.Random.Uint64(), 1)) }

// Push adds an event to the queue.
func (w *World) Push(e Event) { w.Queue.Add(e.At, e) }

// Later delivers an event to an endpoint after a delay. The epoch is that of a timer.
func (w *World) Later(d time.Duration, to int32, epoch uint32, what any) {
	w.Push(Event{At: w.Now + int64(d), From: Nowhere, To: to, Epoch: epoch, What: what})
}

// After calls a function after a delay.
func (w *World) After(d time.Duration, do func()) { w.Later(d, Nowhere, 0, do) }

// SetFor sets a variable for a while; then it resets it to its zero value.
func SetFor[T any](w *World, d time.Duration, what *T, to T) {
	*what = to
	w.After(d, func() {
		var none T
		*what = none
	})
}

// Next removes the next event from the queue, and advances the time to its instant.
func (w *World) Next() (e Event) {
	w.Now, e = w.Queue.Next()
	e.At = w.Now // Revise may have moved it
	w.Events++
	return e
}

// Zero adds names to counts with 0, so that a report includes those that are never counted.
func Zero(counts map[string]uint64, names ...string) {
	for _, name := range names {
		counts[name] = 0
	}
}

// Mix adds two numbers to the trace hash.
func (w *World) Mix(a, b uint64) { w.Hash.Mix(a, b) }

// Traced reports whether there is a trace. Callers use it to avoid the cost of unused arguments.
func (w *World) Traced() bool { return w.text != nil }

// Printf writes a line to the trace.
func (w *World) Printf(format string, args ...any) {
	if w.text != nil {
		// A failed write has no effect on the world.
		_, _ = fmt.Fprintf(w.text, "%12.6f  %s\n", w.Seconds(w.Now), fmt.Sprintf(format, args...))
	}
}

// Seconds returns a true time in seconds since the start of the world.
func (w *World) Seconds(t int64) float64 { return float64(t-w.start) / 1e9 }

// Elapsed returns the time since the start of the world.
func (w *World) Elapsed() time.Duration { return time.Duration(w.Now - w.start) }

// Violated records the first violation; the world ends with it.
func (w *World) Violated(i Invariant, format string, args ...any) {
	if w.Violation != nil {
		return
	}
	w.Violation = &Violation{Invariant: i, At: w.Elapsed(), Text: fmt.Sprintf(format, args...)}
	w.Printf("!!! %v", w.Violation)
}

// Guard runs a world and returns the result. A panic of a machine is a violation: a real process handles it
// safely, but it is a bug.
func (w *World) Guard(run func()) *Result {
	func() {
		defer func() {
			if r := recover(); r != nil {
				w.Violation = nil
				w.Violated(NoCrash, "%v\n%s", r, debug.Stack())
			}
		}()
		run()
	}()
	w.Simulated = w.Elapsed()
	return &w.Result
}

// A Hash is a running hash of numbers.
type Hash uint64

// Mix adds two numbers to the hash.
func (h *Hash) Mix(a, b uint64) {
	n := (uint64(*h) ^ a) * 0x100000001b3
	*h = Hash((n ^ b ^ n>>29) * 0x9e3779b97f4a7c15)
}

// Must returns v, and panics if err is not nil. It is for configurations that a simulator creates.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
