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
	sent map[leasehold.Session]protocol.Seq // the newest message to each
	// reported are the leases in the last request of each session.
	reported map[leasehold.Session][]leasehold.Lease
	lookups  map[uint64]bool // IDs of the lookups that have sent a request

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
	m.reported = map[leasehold.Session][]leasehold.Lease{}
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
		m.reported[what.Holder.Session] = what.Leases
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

// do executes the actions of the machine. Requests of the election and the loading of a table are answered at
// once, within the same instant. The answers are queued, because the next step overwrites the buffer of
// actions.
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
			m.then("%s settles the promise: all longer leases have expired", m.name)
			answers = append(answers, m.store.atOnce(m.name, storeRequest{term: a.Term, what: a}))
		case managerproc.Manage:
			m.manage(a)
		case managerproc.Serves: // owners send to all managers here
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

// relay executes the actions of a standby for its lookups. To the leader it is a lookup like any other.
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
		if _, follows := m.processes[a.Lookup].(*manager); !follows { // a standby finds the leader by itself
			m.send(&message{from: m.name, to: m.lookupName(a.Lookup), what: a.NotLeader})
		}
	case managerproc.Note:
		if a.What != lookupmachine.NoteLeaderSilent { // it sends to the leader in any case
			m.then("%s, as a standby, %s", m.name, lookupNote(a.Note))
		}
	default:
		panic(fmt.Sprintf("unexpected action of %s: %T", m.name, a))
	}
}

// broadcast sends changes to all lookups that have sent a request.
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
		m.then("%s steps down", m.name)
	case byrecord.Resigned:
		m.then("%s has resigned, and exits", m.name)
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
		m.then("%s receives term %d, and reads the record", m.name, act.By)
	case machine.Deposed:
		m.then("%s is deposed by term %d", m.name, act.By)
	case machine.Ordered:
		if act.Err != nil {
			m.then("%s rejects it: %v", m.name, act.Err)
		}
	case machine.Note:
		if act.Owner != extra.Owner {
			m.then("%s %s", m.name, managerNote(act))
		}
	}
}

// extra is an owner that joins and leaves, without output.
var extra = &table.Holder{Owner: "extra", Session: leasehold.Session{0xff}, Addr: "nowhere", Weight: 1}

// rethink makes the leader request a new plan from its policy, as it does when an owner joins or leaves.
func (m *manager) rethink() {
	m.say("%s requests a new plan", m.name)
	machine := m.node.Manager(namespace)
	for _, r := range []protocol.LeaseRequest{{}, {Term: machine.Term()}, {Leaving: true}} {
		m.extraSeq++
		r.Namespace, r.Holder, r.Seq = namespace, extra, m.extraSeq
		if r.Term > 0 {
			r.Heard = m.sent[extra.Session] // the first reply was received
		}
		m.step(managerproc.Request{LeaseRequest: &r})
	}
}

// lookupName returns the name of a lookup. Its ID is its index in processes.
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
		return fmt.Sprintf("for its lookups: changes since LSN %d", r.LSN)
	case protocol.NotLeader:
		if r.Leader == "" {
			return "not the leader, and there is none"
		}
		return fmt.Sprintf("not the leader: that is %s in term %d", r.Leader, r.Term)
	case storeRequest:
		return m.store.quote(r)
	}
	panic(fmt.Sprintf("unexpected message of %s: %T to %s", m.name, what, to))
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
	recalled := protocol.Missing(m.reported[r.Session], all)
	var parts []string
	if len(renewed) > 0 {
		parts = append(parts, "renews "+m.leases(renewed))
	}
	if len(granted) > 0 {
		parts = append(parts, "grants "+strings.Join(granted, " "))
	}
	switch {
	case r.Goodbye:
		parts = append(parts, "confirms the leave")
	case r.Refusal != leasehold.Other:
		parts = append(parts, fmt.Sprintf("refused (%v)", r.Refusal))
	case r.Incumbent != nil:
		parts = append(parts, m.holderName(r.Incumbent)+" has the name")
	case len(recalled) > 0:
		parts = append(parts, "recalls "+m.leases(recalled))
	case len(parts) == 0:
		parts = append(parts, "offers nothing")
	}
	if r.Contender != nil {
		parts = append(parts, m.holderName(r.Contender)+" wants the name")
	}
	return text + " " + strings.Join(append(parts, m.orders(r, m.reported[r.Session])...), ", ")
}

func (m *manager) quoteLookup(r *protocol.LookupReply) string {
	var text string
	switch {
	case r.Snapshot != nil:
		text = fmt.Sprintf("snapshot at LSN %d: %s", r.LSN, strings.Join(m.rows(r.Snapshot), " "))
	case len(r.Changes) > 0:
		text = fmt.Sprintf("LSN %d->%d: %s", r.From, r.LSN, m.changes(r.Changes))
	case r.Echo == 0:
		text = fmt.Sprintf("changes up to LSN %d follow", r.LSN)
	default:
		text = fmt.Sprintf("no changes since LSN %d", r.LSN)
	}
	if r.Echo == 0 {
		text = "broadcast: " + text
	}
	if r.Age > 0 {
		text += fmt.Sprintf(" (as of %s ago)", seconds(r.Age.Round(time.Millisecond)))
	}
	return text
}
