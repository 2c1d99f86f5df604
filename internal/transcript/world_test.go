package transcript

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/table"
	"github.com/leasehold-dev/leasehold/partition"
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

	unfiltered bool
	violations []string
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

// A process is anything with a clock.
type process interface {
	self() *host
	boot(options map[string]string) error
	wake()                           // time has passed
	slept()                          // its clock stood still
	receive(from string, what any)   // a message has arrived
	show()                           // print what it knows
	quote(from string, m any) string // a message from it, for the transcript
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

// A message is under way from one process to another.
type message struct {
	from, to string
	what     any
	// vain is what the sender of a store request concludes if no answer comes;
	// nil for all other messages.
	vain any
	// abandoned: the sender of this store request no longer waits.
	abandoned bool
}

func (m *message) link() string { return m.from + "->" + m.to }

// send puts a message under way.
func (w *world) send(m *message) {
	fate := ""
	switch to := w.find(m.to); {
	case w.cut[m.link()]:
		fate = " (lost: the link is cut)"
	case to != nil && !to.self().alive:
		fate = fmt.Sprintf(" (lost: %s is down)", m.to)
	default:
		w.underWay = append(w.underWay, m)
	}
	w.then("%s %s%s", m.link(), w.quote(m), fate)
}

func (w *world) quote(m *message) string {
	if p := w.find(m.from); p != nil {
		return p.quote(m.to, m.what)
	}
	return w.store.quote(m.what)
}

// pick takes a message of a link off the wire: the first, or the last.
func (w *world) pick(link string, last bool) *message {
	order := slices.All(w.underWay)
	if last {
		order = slices.Backward(w.underWay)
	}
	for i, m := range order {
		if m.link() == link {
			w.underWay = slices.Delete(w.underWay, i, i+1)
			return m
		}
	}
	return nil
}

// deliver lets a message arrive.
func (w *world) deliver(m *message) {
	if m.to == storeName {
		w.store.serve(m)
		return
	}
	p := w.find(m.to)
	if m.abandoned {
		w.say("%s no longer waits for %s", m.to, w.quote(m))
		return
	}
	w.say("%s receives from %s: %s", m.to, m.from, w.quote(m))
	if !p.self().alive {
		w.then("%s is down", m.to)
		return
	}
	what := m.what
	if w.unfiltered {
		what = w.disguise(m)
	}
	p.receive(m.from, what)
	w.audit()
}

// lose drops a message. Whoever waits for the store is left in the dark.
func (w *world) lose(m *message) {
	w.say("lost: %s %s", m.link(), w.quote(m))
	asker := m.from
	if asker == storeName {
		asker = m.to
	}
	if p := w.find(asker); m.vain != nil && p != nil && p.self().alive && !m.abandoned {
		w.then("%s does not know whether it happened", asker)
		p.receive(storeName, m.vain)
		w.audit()
	}
}

// disguise makes a lease message look as if it had crossed no other.
func (w *world) disguise(m *message) any {
	switch what := m.what.(type) {
	case *protocol.LeaseRequest:
		r := *what
		if to := w.find(m.to).(*manager); to.node.Manager(namespace) != nil {
			if sent := to.sent[r.Holder.Session]; sent > 0 {
				r.Term, r.Heard = to.node.Manager(namespace).Term(), sent
			}
		}
		return &r
	case *protocol.LeaseReply:
		r := *what
		r.Echo = w.find(m.to).(*owner).seq
		return &r
	}
	return m.what
}

// maxSteps is more than any command of a script takes.
const maxSteps = 10000

// settle lets everything under way arrive, in the order of sending, and all
// that is sent in turn.
func (w *world) settle() error {
	waits := func(m *message) bool {
		to := w.find(m.to)
		return w.held[m.link()] || to != nil && to.self().asleep
	}
	for range maxSteps {
		i := slices.IndexFunc(w.underWay, func(m *message) bool { return !waits(m) })
		if i < 0 {
			return nil
		}
		m := w.underWay[i]
		w.underWay = slices.Delete(w.underWay, i, i+1)
		w.deliver(m)
	}
	return fmt.Errorf("there is no end to the messages")
}

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
	w.violations = nil
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
						w.violations = append(w.violations, fmt.Sprintf("!! %s and %s both hold %s", a.name, b.name, w.span(r)))
					}
				}
			}
		}
	}
	for _, v := range w.violations {
		w.say("%s", v)
	}
}

// scriptedPolicy assigns what the script's plan says.
type scriptedPolicy struct {
	world *world
	plan  []planned // nil: equal parts
}

type planned struct {
	owner  leasehold.OwnerID
	lo, hi uint64 // units
}

func (*scriptedPolicy) Name() string { return "scripted" }

func (p *scriptedPolicy) Assign(in partition.Input) (partition.Assignment, error) {
	if p.plan == nil {
		return partition.Even{}.Assign(in)
	}
	var a partition.Assignment
	for u := range p.world.units {
		a = a.Append(p.world.key(u), p.at(u, in.Members))
	}
	return a, nil
}

func (p *scriptedPolicy) at(u uint64, members []partition.Member) leasehold.OwnerID {
	for _, s := range p.plan {
		there := slices.ContainsFunc(members, func(m partition.Member) bool { return m.Owner == s.owner })
		if s.lo <= u && u < s.hi && there {
			return s.owner
		}
	}
	return ""
}
