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

// namespace is the one that all scripts are about.
const namespace leasehold.Namespace = "figures"

// A world is the processes of one script, what is under way between them, and
// true time.
type world struct {
	out    strings.Builder
	now    time.Duration // true time since the script began
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

	unfiltered bool // messages that crossed others pass for ones that did not
	violated   bool // a key had two holders
}

// A session is what the transcript calls it, and where it runs.
type session struct {
	name  string // the owner's, numbered from the second on: A, A/2
	place string // the process
}

func newWorld() *world {
	w := &world{}
	w.begin()
	return w
}

// begin makes the world as it is before a script's first line.
func (w *world) begin() {
	*w = world{
		units: 4, timing: protocol.DefaultTiming(), store: &store{world: w}, policy: scriptedPolicy{world: w},
		cut: map[string]bool{}, held: map[string]bool{},
		sessions: map[leasehold.Session]*session{}, started: map[leasehold.OwnerID]int{},
	}
}

// say prints a line at the margin.
func (w *world) say(format string, args ...any) { fmt.Fprintf(&w.out, format+"\n", args...) }

// then prints a line of what follows.
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

// start adds a process and boots it. Clocks have nothing to do with each
// other: each starts a thousand seconds from the one before.
func (w *world) start(p process, name string, luck float64, options map[string]string) error {
	if w.find(name) != nil {
		return fmt.Errorf("there is a %s already", name)
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

// newSession draws a session for an owner.
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

// drawSession gives every start of a process its own: they count up.
func (w *world) drawSession() leasehold.Session {
	w.starts++
	return leasehold.Session{w.starts}
}

func (w *world) holderName(h *table.Holder) string { return w.sessions[h.Session].name }

// maxSteps is more than any command of a script takes.
const maxSteps = 10000

// advance lets true time pass, and wakes every process when it is due. After
// each wake-up it calls after.
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
		if w.out.Len() == header { // it had nothing to do
			w.out.Reset()
			w.out.WriteString(text[:before])
		}
		if err := after(); err != nil {
			return err
		}
	}
	return fmt.Errorf("at %s time stands still: some process is always due", seconds(w.now))
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

// audit looks for a key that two owners hold.
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
