package transcript

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// namespace is the namespace of all scripts.
const namespace leasehold.Namespace = "figures"

// A world has the processes of one script, the messages in flight between them, and the true time.
type world struct {
	out    strings.Builder
	now    time.Duration // true time since the start of the script
	units  uint64
	timing protocol.Timing
	policy scriptedPolicy

	store     *store
	processes []process // in the order of their first start
	underWay  []*message
	cut, held map[string]bool // links

	sessions map[leasehold.Session]*session
	started  map[leasehold.OwnerID]int // sessions by name
	starts   byte
	tickets  []protocol.Ticket // of moves, in the order of their appearance

	unfiltered bool // messages that crossed others are not recognised
	violated   bool // a key had two holders
}

// A session is the name of a session in the transcript, and its process.
type session struct {
	name  string // of the owner, with a number from the second session on: A, A/2
	place string // name of the process
}

func newWorld() *world {
	w := &world{}
	w.begin()
	return w
}

// begin resets the world to the state before the first line of a script.
func (w *world) begin() {
	*w = world{
		units: 4, timing: protocol.DefaultTiming(), store: &store{world: w}, policy: scriptedPolicy{world: w},
		cut: map[string]bool{}, held: map[string]bool{},
		sessions: map[leasehold.Session]*session{}, started: map[leasehold.OwnerID]int{},
	}
}

// say prints a line without indentation.
func (w *world) say(format string, args ...any) { fmt.Fprintf(&w.out, format+"\n", args...) }

// then prints an indented line.
func (w *world) then(format string, args ...any) { w.say("  "+format, args...) }

// find returns the process of that name, nil if there is none.
func (w *world) find(name string) process {
	for _, p := range w.processes {
		if p.self().name == name {
			return p
		}
	}
	return nil
}

// start adds a process and boots it. Clocks are unrelated: each starts a thousand seconds after the one
// before.
func (w *world) start(p process, name string, luck float64, options map[string]string) error {
	if w.find(name) != nil {
		return fmt.Errorf("%s exists already", name)
	}
	origin := mono.Instant(0).Add(time.Duration(1+len(w.processes)) * 1000 * time.Second)
	*p.self() = host{world: w, name: name, clock: clock{origin, w.now, 1}, dice: newDice(luck)}
	w.processes = append(w.processes, p)
	return w.boot(p, options)
}

func (w *world) boot(p process, options map[string]string) error {
	h := p.self()
	h.alive, h.alarm = true, mono.Never
	if err := p.boot(options); err != nil {
		return err
	}
	p.wake()
	return nil
}

// newSession returns a new session of an owner.
func (w *world) newSession(owner leasehold.OwnerID, place string) leasehold.Session {
	w.started[owner]++
	name := string(owner)
	if n := w.started[owner]; n > 1 {
		name = fmt.Sprintf("%s/%d", owner, n)
	}
	s := w.drawSession()
	w.sessions[s] = &session{name, place}
	return s
}

// drawSession returns a unique session for each start of a process: a counter.
func (w *world) drawSession() leasehold.Session {
	w.starts++
	return leasehold.Session{w.starts}
}

func (w *world) holderName(h *table.Holder) string { return w.sessions[h.Session].name }

// maxSteps is the maximum number of steps of a command.
const maxSteps = 10000

// advance advances the true time, and wakes every process when it is due. It calls after after each wake.
func (w *world) advance(d time.Duration, after func() error) error {
	end := w.now + d
	for range maxSteps {
		p := w.nextDue()
		if p == nil || p.self().due() > end {
			w.now = end
			return nil
		}
		w.now = p.self().due()
		before := w.out.Len()
		text := w.out.String()
		w.say("at %s %s wakes", seconds(w.now), p.self().name)
		header := w.out.Len()
		p.wake()
		w.audit()
		if w.out.Len() == header { // the wake had no consequence
			w.out.Reset()
			w.out.WriteString(text[:before])
		}
		if err := after(); err != nil {
			return err
		}
	}
	return fmt.Errorf("at %s the time does not advance: some process is always due", seconds(w.now))
}

func (w *world) nextDue() process {
	var next process
	for _, p := range w.processes {
		if at := p.self().due(); at != math.MaxInt64 && (next == nil || at < next.self().due()) {
			next = p
		}
	}
	return next
}

// audit checks that no key has two holders.
func (w *world) audit() {
	var owners []*owner
	for _, p := range w.processes {
		if o, ok := p.(*owner); ok && o.valid() {
			owners = append(owners, o)
		}
	}
	for i, a := range owners {
		for _, b := range owners[i+1:] {
			for _, l := range a.view.Leases {
				for _, k := range b.view.Leases {
					if r, both := l.Range.Intersect(k.Range); both {
						w.violated = true
						w.say("!! %s and %s both hold %s", a.name, b.name, w.span(r))
					}
				}
			}
		}
	}
}
