package transcript

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	lookupmachine "github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A manager is a manager process.
type manager struct {
	host
	node *managerproc.Machine
	sent map[leasehold.Session]protocol.Seq // our newest message to each
	// told is what each session last said that it holds.
	told    map[leasehold.Session][]leasehold.Lease
	lookups map[uint64]bool // those that have spoken to us

	extraSeq protocol.Seq
}

func (m *manager) boot(options map[string]string) error {
	if err := setRate(&m.host, options); err != nil {
		return err
	}
	cfg := machine.Config{Policy: &m.policy, Rand: rand.New(marked{m.dice, uint64(len(m.processes))})}
	if err := setInt(&cfg.Log.Changes, options["log"]); err != nil {
		return err
	}
	if err := setDuration(&cfg.Log.Age, options["age"]); err != nil {
		return err
	}
	if err := setInt(&cfg.Seams, options["seams"]); err != nil {
		return err
	}
	if err := setInt(&cfg.Moves, options["moves"]); err != nil {
		return err
	}
	m.sent = map[leasehold.Session]protocol.Seq{}
	m.told = map[leasehold.Session][]leasehold.Lease{}
	m.lookups = map[uint64]bool{}
	m.store.create(m.timing)
	var err error
	m.node, err = managerproc.New(m.local(), managerproc.Config{
		Election: byrecord.Config{
			Self: storage.ManagerID(m.name), Session: m.drawSession(), Drift: m.timing.Drift, Rand: m.rand(),
		},
		Configure: func(n storage.Namespace) (machine.Config, error) {
			cfg.Timing = protocol.Timing{Lease: n.Lease, Renew: n.Renew, Drift: n.Drift}
			return cfg, nil
		},
		Rand: m.rand(),
	})
	return err
}

func (m *manager) slept() { m.step(managerproc.Slept{}) }

func (m *manager) wake() { m.do(m.node.Advance(m.local())) }

func (m *manager) receive(_ string, what any) {
	switch what := what.(type) {
	case *protocol.LeaseRequest:
		m.told[what.Holder.Session] = what.Leases
		m.step(managerproc.Request{LeaseRequest: what})
	case *protocol.LookupRequest:
		m.lookups[what.Lookup] = true
		m.step(managerproc.Lookup{LookupRequest: what})
	case *protocol.LookupReply:
		m.step(managerproc.Followed{Namespace: namespace, Event: lookupmachine.Reply{LookupReply: what}})
	case storeAnswer:
		m.step(what.event)
	}
}

func (m *manager) step(e managerproc.Event) { m.do(m.node.Step(m.local(), e)) }

// do carries out what the machine decided. What the election and the loading
// of a table ask of the store is answered at once, within the same instant;
// their actions come from a buffer that the next step overwrites.
func (m *manager) do(actions []managerproc.Action, wake mono.Instant) {
	m.alarm = wake
	var answers []managerproc.Event
	for _, a := range actions {
		switch a := a.(type) {
		case managerproc.Elect:
			answers = append(answers, m.elect(a.Action)...)
		case managerproc.Load:
			answers = append(answers, m.store.atOnce(m.name, storeRequest{term: a.Term, what: a}))
		case managerproc.LoadCatalog:
			answers = append(answers, m.store.atOnce(m.name, storeRequest{term: a.Term, what: a}))
		case managerproc.Settle:
			m.then("%s knows that nobody believes in the longer leases any more", m.name)
			answers = append(answers, m.store.atOnce(m.name, storeRequest{term: a.Term, what: a}))
		case managerproc.Manage:
			m.manage(a)
		case managerproc.Serves: // whoever speaks here is told to
		case managerproc.RedirectOwner:
			m.send(&message{from: m.name, to: m.sessions[a.Session].place, what: a.NotLeader})
		default:
			m.relay(a)
		}
	}
	for _, e := range answers {
		m.step(e)
	}
}

// relay carries out what a standby does for its lookups. To the leader it is a
// lookup like any other.
func (m *manager) relay(a managerproc.Action) {
	switch a := a.(type) {
	case managerproc.Follow:
		asked := *a.Request
		asked.Lookup = uint64(slices.Index(m.processes, process(m)))
		m.send(&message{from: m.name, to: string(a.To), what: &asked})
	case managerproc.Answer:
		m.send(&message{from: m.name, to: m.lookupName(a.Lookup), what: a.Reply})
	case managerproc.Relay:
		m.broadcast(a.Reply)
	case managerproc.RedirectLookup:
		if _, follows := m.processes[a.Lookup].(*manager); !follows { // who follows knows better
			m.send(&message{from: m.name, to: m.lookupName(a.Lookup), what: a.NotLeader})
		}
	case managerproc.Note:
		if a.What != lookupmachine.NoteLeaderSilent { // it asks whoever leads, answered or not
			m.then("%s, which follows, %s", m.name, lookupNote(a.Note))
		}
	default:
		panic(fmt.Sprintf("%s does %T", m.name, a))
	}
}

// broadcast sends news to all who have asked for any.
func (m *manager) broadcast(r *protocol.LookupReply) {
	for i := range m.processes {
		if m.lookups[uint64(i)] {
			m.send(&message{from: m.name, to: m.lookupName(uint64(i)), what: r})
		}
	}
}

func (m *manager) elect(a byrecord.Action) []managerproc.Event {
	switch a := a.(type) {
	case byrecord.Read, byrecord.Swap:
		return []managerproc.Event{m.store.atOnce(m.name, storeRequest{what: a})}
	case byrecord.Lead:
		m.then("%s leads in term %d", m.name, a.Term)
	case byrecord.StepDown:
		m.then("%s no longer leads", m.name)
	case byrecord.Resigned:
		m.then("%s has resigned, and ends", m.name)
		m.alive = false
	case byrecord.Note:
		if text := electionNote(a); text != "" {
			m.then("%s %s", m.name, text)
		}
	}
	return nil
}

func (m *manager) manage(a managerproc.Manage) {
	switch act := a.Action.(type) {
	case machine.Send:
		s := act.Reply.Session
		m.sent[s] = act.Reply.Seq
		if s == extra.Session {
			return
		}
		m.send(&message{from: m.name, to: m.sessions[s].place, what: act.Reply})
	case machine.Answer:
		m.send(&message{from: m.name, to: m.lookupName(act.Lookup), what: act.Reply})
	case machine.Broadcast:
		m.broadcast(act.Reply)
	case machine.Commit, machine.ReadEnd, machine.SaveSnapshot:
		r := storeRequest{term: a.Term, what: act}
		m.send(&message{from: m.name, to: storeName, what: r, vain: storeAnswer{event: r.unanswered()}})
	case machine.Outranked:
		m.then("%s hears of term %d, and asks the store", m.name, act.By)
	case machine.Deposed:
		m.then("%s learns that term %d has begun", m.name, act.By)
	case machine.Ordered:
		if act.Err != nil {
			m.then("%s will not: %v", m.name, act.Err)
		}
	case machine.Note:
		if act.Owner != extra.Owner {
			m.then("%s %s", m.name, managerNote(act))
		}
	}
}

// extra is an owner that joins and leaves, and is never seen.
var extra = &table.Holder{Owner: "extra", Session: leasehold.Session{0xff}, Addr: "nowhere", Weight: 1}

// rethink makes the leader ask its policy again, which it does when an owner
// joins or leaves.
func (m *manager) rethink() {
	m.say("%s thinks again about who is to have what", m.name)
	machine := m.node.Manager(namespace)
	for _, r := range []protocol.LeaseRequest{{}, {Term: machine.Term()}, {Leaving: true}} {
		m.extraSeq++
		r.Namespace, r.Holder, r.Seq = namespace, extra, m.extraSeq
		if r.Term > 0 {
			r.Heard = m.sent[extra.Session] // it proves that it hears us
		}
		m.step(managerproc.Request{LeaseRequest: &r})
	}
}

// lookupName returns the name of a lookup, whose number is its place among the
// processes.
func (w *world) lookupName(id uint64) string { return w.processes[id].self().name }

func (m *manager) show() {
	if machine := m.node.Manager(namespace); machine != nil {
		m.printTable(machine.Table())
		return
	}
	m.say("%s does not lead", m.name)
	if followed := m.node.Followed(namespace); followed != nil {
		m.printTable(followed)
	}
}

func (m *manager) quote(to string, what any) string {
	switch r := what.(type) {
	case *protocol.LeaseReply:
		return m.quoteLease(r)
	case *protocol.LookupReply:
		return m.quoteLookup(r)
	case *protocol.LookupRequest:
		return fmt.Sprintf("for those who ask me: I am at LSN %d", r.LSN)
	case protocol.NotLeader:
		if r.Leader == "" {
			return "I do not lead, and know of nobody who does"
		}
		return fmt.Sprintf("I do not lead: %s does, in term %d", r.Leader, r.Term)
	case storeRequest:
		return m.store.quote(r)
	}
	panic(fmt.Sprintf("%s sends %T to %s", m.name, what, to))
}

func (m *manager) quoteLease(r *protocol.LeaseReply) string {
	text := m.numbers(r.Term, r.Echo, r.Seq)
	var renewed, all []leasehold.Lease
	var granted []string
	for _, o := range r.Offers {
		all = append(all, o.Lease)
		switch {
		case !o.Fresh:
			renewed = append(renewed, o.Lease)
		case o.Ticket.IsZero():
			granted = append(granted, m.lease(o.Lease))
		default:
			granted = append(granted, fmt.Sprintf("%s with its state (%s)", m.lease(o.Lease), m.ticket(o.Ticket)))
		}
	}
	recalled := protocol.Missing(m.told[r.Session], all)
	var parts []string
	if len(renewed) > 0 {
		parts = append(parts, "renews "+m.leases(renewed))
	}
	if len(granted) > 0 {
		parts = append(parts, "grants "+strings.Join(granted, " "))
	}
	switch {
	case r.Goodbye:
		parts = append(parts, "goodbye")
	case r.Refusal != leasehold.Other:
		parts = append(parts, fmt.Sprintf("refuses to serve (%v)", r.Refusal))
	case r.Incumbent != nil:
		parts = append(parts, m.holderName(r.Incumbent)+" has the name: wait")
	case len(recalled) > 0:
		parts = append(parts, "recalls "+m.leases(recalled))
	case len(parts) == 0:
		parts = append(parts, "offers nothing")
	}
	if r.Contender != nil {
		parts = append(parts, m.holderName(r.Contender)+" wants the name")
	}
	return text + " " + strings.Join(append(parts, m.orders(r, m.told[r.Session])...), ", ")
}

func (m *manager) quoteLookup(r *protocol.LookupReply) string {
	var text string
	switch {
	case r.Snapshot != nil:
		text = fmt.Sprintf("snapshot at LSN %d: %s", r.LSN, strings.Join(m.rows(r.Snapshot), " "))
	case len(r.Changes) > 0:
		text = fmt.Sprintf("LSN %d->%d: %s", r.From, r.LSN, m.changes(r.Changes))
	case r.Echo == 0:
		text = fmt.Sprintf("there is news, up to LSN %d", r.LSN)
	default:
		text = fmt.Sprintf("LSN %d is current", r.LSN)
	}
	if r.Echo == 0 {
		text = "unasked, " + text
	}
	if r.Age > 0 {
		text += fmt.Sprintf(" (as of %s ago)", seconds(r.Age.Round(time.Millisecond)))
	}
	return text
}
