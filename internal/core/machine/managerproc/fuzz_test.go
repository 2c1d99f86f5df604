package managerproc_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// A tape is fuzzed bytes, read as decisions. At its end it reads zeros.
type tape struct{ data []byte }

func (t *tape) byte() byte {
	if len(t.data) == 0 {
		return 0
	}
	b := t.data[0]
	t.data = t.data[1:]
	return b
}

// below returns a number from 0 to n-1.
func (t *tape) below(n int) int { return int(t.byte()) % n }

// near returns a number that is probably usual, may be close to it, and can be extreme.
func (t *tape) near(usual uint64) uint64 {
	switch b := t.byte(); {
	case b < 200:
		return usual
	case b < 250:
		return usual + uint64(b) - 225
	default:
		return []uint64{0, 1, math.MaxInt64, 1 << 63, math.MaxUint64, usual}[b-250]
	}
}

var fuzzNamespaces = []leasehold.Namespace{"x", "y"}

// A fuzzedNode is a manager process with arbitrary events, a rival, and a store that replies in any
// order.
type fuzzedNode struct {
	t       *testing.T
	tape    tape
	machine *managerproc.Machine
	now     mono.Instant
	wake    mono.Instant

	term       leasehold.Term // of its leadership; 0 if it does not lead
	silent     bool           // it has resigned
	record     storage.Record
	bases      map[leasehold.Namespace]*table.Table // before the logs; nil if there is none
	unfinished map[leasehold.Namespace]bool
	logs       map[leasehold.Namespace][]table.Change
	tables     map[leasehold.Namespace]*table.Table // result of the logs
	catalog    *storage.Catalog
	pending    []managerproc.Action // requests to the store
	answers    []managerproc.Event  // replies of the store, in flight
	underWay   int                  // commits whose outcome the process does not know

	follows []managerproc.Follow // requests to the rival

	peers []*fuzzedPeer
}

// A fuzzedPeer is an owner that mostly follows the protocol.
type fuzzedPeer struct {
	namespace leasehold.Namespace
	holder    *table.Holder
	seq       protocol.Seq
	lastReply protocol.LeaseReply
}

func newFuzzedNode(t *testing.T, data []byte) *fuzzedNode {
	n := &fuzzedNode{t: t, tape: tape{data}, now: mono.Instant(time.Hour), logs: make(map[leasehold.Namespace][]table.Change), tables: make(map[leasehold.Namespace]*table.Table), bases: make(map[leasehold.Namespace]*table.Table), unfinished: make(map[leasehold.Namespace]bool)}
	cfg := managerproc.Config{
		Election:  byrecord.Config{Self: "me", Session: leasehold.Session{1}, Rand: rand.New(rand.NewPCG(1, 2))},
		Configure: fuzzConfigure, MaxRelays: fuzzRelays, RelayIdle: 20 * time.Second, Rand: rand.New(rand.NewPCG(3, 4)),
	}
	n.catalog = &storage.Catalog{Version: 1}
	for _, ns := range fuzzNamespaces {
		n.tables[ns] = table.New()
		n.catalog = n.catalog.With(entry(ns))
	}
	for i := range 6 {
		n.peers = append(n.peers, &fuzzedPeer{
			namespace: []leasehold.Namespace{"x", "x", "y", "y", "x", "unknown"}[i],
			holder:    &table.Holder{Owner: leasehold.OwnerID([]string{"a", "b", "c"}[i%3]), Session: leasehold.Session{byte(i + 1)}, Addr: "o", Weight: 1},
		})
	}
	m, err := managerproc.New(n.now, cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.machine = m
	n.did(m.Advance(n.now))
	return n
}

// fuzzRelays is the limit of relays: lower than the number of namespaces.
const fuzzRelays = 2

// fuzzConfigure rejects some configurations, and leaves others to the validation of the namespace.
func fuzzConfigure(e storage.Namespace) (manager.Config, error) {
	cfg, err := configure(e)
	cfg.Policy, cfg.MaxOwners = partition.Consistent{VirtualNodes: 2}, 4
	cfg.Log.Changes, cfg.Log.BatchChanges, cfg.Log.SnapshotEvery = 8, 4, 4
	return cfg, err
}

// run executes the tape.
func (n *fuzzedNode) run() {
	for len(n.tape.data) > 0 && !n.silent {
		n.pass()
		switch b := n.tape.below(32); {
		case b < 10:
			n.serve()
		case b < 14:
			n.answer()
		case b < 15:
			n.rival()
		case b < 16:
			n.step(managerproc.Election{Event: byrecord.Seen{Record: n.record}})
		case b < 17:
			n.meddle()
		case b < 18:
			n.operate()
		case b < 19:
			n.lead()
		case b < 21:
			n.step(managerproc.Lookup{LookupRequest: &protocol.LookupRequest{
				Namespace: []leasehold.Namespace{"x", "y", "unknown", ""}[n.tape.below(4)], Lookup: n.tape.near(1),
				Seq: protocol.Seq(n.tape.near(1)), LSN: leasehold.LSN(n.tape.near(2)),
			}})
		default:
			n.ownerRequest()
		}
	}
}

// pass advances the clock: not at all, a little, up to the wake time, or by seconds.
func (n *fuzzedNode) pass() {
	switch b := n.tape.byte(); {
	case b < 100:
	case b < 200:
		n.now = n.now.Add(time.Duration(b) * time.Millisecond)
	case b < 250:
		n.now = max(n.now, min(n.wake, n.now.Add(time.Minute)))
	default:
		n.now = n.now.Add(time.Duration(b-249) * 2 * time.Second)
	}
	n.did(n.machine.Advance(n.now))
}

func (n *fuzzedNode) step(e managerproc.Event) { n.did(n.machine.Step(n.now, e)) }

// did checks the actions, and that the machine does not spin.
func (n *fuzzedNode) did(actions []managerproc.Action, wake mono.Instant) {
	n.t.Helper()
	const patience = 16
	for range patience {
		for _, a := range actions {
			n.check(a)
		}
		n.checkLoads(actions)
		for _, ns := range fuzzNamespaces {
			if m := n.machine.Manager(ns); m != nil {
				n.checkManager(ns, m)
			}
		}
		if n.wake = wake; wake > n.now {
			return
		}
		actions, wake = n.machine.Advance(n.now)
	}
	n.t.Fatalf("at %v the wake time is still %v, after %d calls of Advance", n.now, wake, patience)
}

// checkManager: a namespace has the term of the process, and a table that the store has, or had.
func (n *fuzzedNode) checkManager(ns leasehold.Namespace, m *manager.Machine) {
	n.t.Helper()
	if n.term == 0 || m.Term() != n.term {
		n.t.Fatalf("%q is led in term %d, and the process leads in %d", ns, m.Term(), n.term)
	}
	have, want := m.Table(), n.tables[ns]
	if have.LSN() > want.LSN() {
		n.t.Fatalf("%q is at lsn %d, and the store at %d", ns, have.LSN(), want.LSN())
	}
	if have.LSN() < want.LSN() {
		return
	}
	for k, pair := range keyrange.Diff(have.Entries(), want.Entries()) {
		n.t.Fatalf("%q has %+v at %v, and the store %+v", ns, pair[0], k, pair[1])
	}
}

func (n *fuzzedNode) check(a managerproc.Action) {
	n.t.Helper()
	switch a := a.(type) {
	case managerproc.Elect:
		n.elects(a)
	case managerproc.Serves:
		if a.Term != n.term {
			n.t.Fatalf("Serves %q in term %d, and the process leads in %d", a.Namespace, a.Term, n.term)
		}
	case managerproc.Manage:
		n.manages(a)
	case managerproc.Load, managerproc.LoadCatalog, managerproc.Settle:
		n.pending = append(n.pending, a)
	case managerproc.RedirectOwner:
		n.redirects(a.NotLeader)
	case managerproc.RedirectLookup:
		n.redirects(a.NotLeader)
	case managerproc.RefuseOwner:
		n.refuses(a.Why)
	case managerproc.RefuseLookup:
		n.refuses(a.Why)
	case managerproc.Parked:
		if n.term == 0 || a.Why == nil {
			n.t.Fatalf("parked in term %d: %q: %v", n.term, a.Namespace, a.Why)
		}
	case managerproc.Follow, managerproc.Unfollow, managerproc.Answer, managerproc.Relay, managerproc.Note:
		n.relays(a)
	default:
		n.t.Fatalf("unexpected action %T", a)
	}
}

// relays: only a standby relays.
func (n *fuzzedNode) relays(a managerproc.Action) {
	n.t.Helper()
	if n.term != 0 {
		n.t.Fatalf("action %[2]T of a leader in term %[1]d", n.term, a)
	}
	switch a := a.(type) {
	case managerproc.Follow:
		if a.To == "me" || a.To == "" {
			n.t.Fatalf("it follows manager %q", a.To)
		}
		n.follows = append(n.follows, a)
		n.follows = n.follows[max(0, len(n.follows)-8):]
	case managerproc.Answer:
		if followed := n.machine.Followed(a.Reply.Namespace); followed == nil || a.Reply.LSN != followed.LSN() || a.Reply.Age < 0 {
			n.t.Fatalf("reply %+v, but its table is %v", a.Reply, followed)
		}
	}
}

// refuses: a refusal has a reason, and only a leader with authority rejects a namespace as
// nonexistent.
func (n *fuzzedNode) refuses(why error) {
	n.t.Helper()
	if why == nil || n.term != 0 && leasehold.KindOf(why) == leasehold.ErrNotFound && !n.machine.Leads(n.now) {
		n.t.Fatalf("refusal in term %d, with authority: %t: %v", n.term, n.machine.Leads(n.now), why)
	}
}

// checkLoads: only the leader loads a namespace, and only if it is not loaded.
func (n *fuzzedNode) checkLoads(actions []managerproc.Action) {
	n.t.Helper()
	for _, a := range actions {
		if l, ok := a.(managerproc.Load); ok && (l.Term != n.term || n.machine.Manager(l.Namespace) != nil) {
			n.t.Fatalf("load in term %d: %+v", n.term, l)
		}
	}
}

func (n *fuzzedNode) redirects(to protocol.NotLeader) {
	n.t.Helper()
	if to.Leader == "" && to.Term > n.record.Term {
		n.t.Fatalf("redirect to %+v, and the record is %+v", to, n.record)
	}
}

func (n *fuzzedNode) elects(a managerproc.Elect) {
	n.t.Helper()
	switch a := a.Action.(type) {
	case byrecord.Lead:
		if a.Term <= n.term {
			n.t.Fatalf("leads in term %d after %d", a.Term, n.term)
		}
		n.term, n.underWay = a.Term, 0
	case byrecord.StepDown:
		n.term, n.underWay = 0, 0
	case byrecord.Resigned:
		n.silent = true
	case byrecord.Read, byrecord.Swap:
		n.pending = append(n.pending, managerproc.Elect{Action: a})
	}
}

func (n *fuzzedNode) manages(a managerproc.Manage) {
	n.t.Helper()
	if a.Term == 0 || !slices.Contains(fuzzNamespaces, a.Namespace) {
		n.t.Fatalf("action %+v in term %d", a, n.term)
	}
	leads := n.machine.Leads(n.now)
	switch act := a.Action.(type) {
	case manager.Commit:
		if act.Batch.Namespace != a.Namespace || act.Batch.Term != a.Term {
			n.t.Fatalf("%q in term %d commits %+v", a.Namespace, a.Term, act.Batch)
		}
		n.underWay++
		n.pending = append(n.pending, a)
	case manager.ReadEnd:
		n.pending = append(n.pending, a)
	case manager.Send:
		if !leads || act.Reply.Namespace != a.Namespace || act.Reply.Term != a.Term {
			n.t.Fatalf("leads: %t, and %q in term %d sends %+v", leads, a.Namespace, a.Term, act.Reply)
		}
		for _, p := range n.peers {
			if p.namespace == a.Namespace && p.holder.Session == act.Reply.Session && n.tape.below(8) > 0 {
				p.lastReply = *act.Reply
			}
		}
	case manager.Answer:
		if !leads || act.Reply.Namespace != a.Namespace {
			n.t.Fatalf("leads: %t, and %q replies %+v", leads, a.Namespace, act.Reply)
		}
	}
}

// serve executes a request to the store, not always the oldest. The reply may be delayed.
func (n *fuzzedNode) serve() {
	if len(n.pending) == 0 {
		return
	}
	i := 0
	if n.tape.below(4) == 0 {
		i = n.tape.below(len(n.pending))
	}
	a := n.pending[i]
	n.pending = slices.Delete(n.pending, i, i+1)
	fails := n.tape.below(8) == 0
	switch a := a.(type) {
	case managerproc.Elect:
		n.answers = append(n.answers, managerproc.Election{Event: n.serveElection(a.Action, fails)})
	case managerproc.Load:
		loaded := managerproc.Loaded{Namespace: a.Namespace, Term: a.Term}
		if !fails {
			loaded.State = &storage.State{Term: n.record.Term, Table: n.bases[a.Namespace], Changes: n.logs[a.Namespace], Unfinished: n.unfinished[a.Namespace]}
		}
		n.answers = append(n.answers, loaded)
	case managerproc.LoadCatalog:
		read := managerproc.Catalogued{Term: a.Term}
		if !fails {
			read.Catalog = n.readCatalog()
		}
		n.answers = append(n.answers, read)
	case managerproc.Settle:
		if next := n.catalog.Settled(a.Entry); next != nil && a.Term == n.record.Term {
			n.writeCatalog(next)
		}
		n.answers = append(n.answers, managerproc.Catalogued{Term: a.Term, Catalog: n.readCatalog()})
	case managerproc.Manage:
		n.answers = append(n.answers, managerproc.Manager{Namespace: a.Namespace, Term: a.Term, Event: n.serveManager(a, fails)})
	}
	if n.tape.below(4) > 0 {
		n.answer()
	}
}

// answer delivers the newest reply of the store.
func (n *fuzzedNode) answer() {
	last := len(n.answers) - 1
	if last < 0 {
		return
	}
	e := n.answers[last]
	n.answers = n.answers[:last]
	if m, ok := e.(managerproc.Manager); ok && m.Term == n.term && m.Event == manager.Event(manager.Committed{Outcome: storage.Done}) {
		n.underWay--
	}
	n.step(e)
}

func (n *fuzzedNode) serveElection(a byrecord.Action, fails bool) byrecord.Event {
	s, ok := a.(byrecord.Swap)
	switch {
	case !ok && fails:
		return byrecord.ReadFailed{}
	case !ok:
		return byrecord.Seen{Record: n.record, AtLeast: a.(byrecord.Read).AtLeast, Wall: int64(n.now.Sub(0)/time.Second) + int64(n.tape.below(200))}
	case s.Prev != n.record.Version:
		return byrecord.Swapped{Swap: s, Outcome: storage.Conflict}
	}
	n.record = s.New
	n.record.Version = s.Prev + 1
	if fails {
		return byrecord.Swapped{Swap: s, Outcome: storage.Unknown}
	}
	return byrecord.Swapped{Swap: s, Outcome: storage.Done, Version: n.record.Version}
}

func (n *fuzzedNode) serveManager(a managerproc.Manage, fails bool) manager.Event {
	end := n.tables[a.Namespace].LSN()
	c, ok := a.Action.(manager.Commit)
	if !ok {
		return manager.LogEnd{Term: n.record.Term, LSN: end, Err: fails}
	}
	landed := c.Batch.Term == n.record.Term && c.Batch.Prev == end
	if landed && n.tape.below(8) > 0 {
		n.append(a.Namespace, c.Batch)
		if !fails {
			return manager.Committed{Outcome: storage.Done}
		}
	}
	if landed {
		return manager.Committed{Outcome: storage.Unknown}
	}
	return manager.Committed{Outcome: storage.Conflict}
}

func (n *fuzzedNode) readCatalog() *storage.Catalog {
	c := *n.catalog
	c.Term = n.record.Term
	return &c
}

func (n *fuzzedNode) writeCatalog(c *storage.Catalog) {
	c.Version = n.catalog.Version + 1
	n.catalog = c
}

// operate changes the configuration of a namespace, to a valid or invalid one, and usually notifies
// the process.
func (n *fuzzedNode) operate() {
	ns := fuzzNamespaces[n.tape.below(2)]
	before := entry(ns)
	if e := n.catalog.Entry(ns); e != nil {
		before = *e
	}
	next := before
	next.Deleted = false
	switch n.tape.below(8) {
	case 0:
		next.Deleted = true
	case 1: // not allowed for operators, but must be harmless
		n.writeCatalog(n.catalog.Without(ns))
		n.step(managerproc.Catalogued{Term: n.term, Catalog: n.readCatalog()})
	case 2:
		next.Policy = "unknown"
	case 3:
		next.Renew = 2 * next.Lease
	case 4, 5:
		next = next.Promising(time.Second, 250*time.Millisecond, 1.2)
		next.Policy = "even"
	default:
		next = next.Promising(10*time.Second, 2500*time.Millisecond, 1.2)
		next.Policy = "even"
	}
	n.writeCatalog(n.catalog.With(next))
	if n.tape.below(4) > 0 {
		n.step(managerproc.Catalogued{Term: n.term, Catalog: n.readCatalog()})
	}
}

// lead lets the rival answer a request, or send an unsolicited reply.
func (n *fuzzedNode) lead() {
	if len(n.follows) == 0 {
		return
	}
	q := n.follows[n.tape.below(len(n.follows))]
	r := &protocol.LookupReply{Namespace: q.Namespace, Leader: "rival", Term: max(1, n.record.Term), Echo: q.Request.Seq}
	if t := n.tables[q.Namespace]; t != nil {
		r.LSN = t.LSN()
		r.Snapshot = t.Clone()
	}
	var e lookup.Event = lookup.Reply{LookupReply: r}
	switch n.tape.below(8) {
	case 0:
		e = lookup.Refused{Kind: leasehold.ErrNotFound}
	case 1:
		e = lookup.Slept{}
	case 2:
		r.Echo, r.Snapshot, r.LSN = 0, nil, r.LSN+1
	case 3:
		r.Age = time.Duration(n.tape.byte()) * time.Second
	}
	n.step(managerproc.Followed{Namespace: q.Namespace, Event: e})
}

func (n *fuzzedNode) append(ns leasehold.Namespace, b *storage.Batch) {
	n.t.Helper()
	if b.Base != nil {
		n.bases[ns], n.logs[ns], n.tables[ns], n.unfinished[ns] = b.Base, nil, b.Base.Clone(), b.Unfinished
	}
	changes := b.Changes
	for i := range changes {
		if err := n.tables[ns].Apply(&changes[i]); err != nil {
			n.t.Fatal(err)
		}
	}
	n.logs[ns] = append(slices.Clip(n.logs[ns]), changes...)
}

// rival lets another manager take over or resign.
func (n *fuzzedNode) rival() {
	if n.record.Leader == "rival" {
		n.record.Resigned = true
	} else {
		n.record = storage.Record{Version: n.record.Version, Term: n.record.Term + 1, Leader: "rival", Session: leasehold.Session{2}}
	}
	n.record.Version++
}

// meddle sends events that are invalid or of the wrong term.
func (n *fuzzedNode) meddle() {
	ns := []leasehold.Namespace{"x", "y", "unknown"}[n.tape.below(3)]
	wrong := n.term + 1 + leasehold.Term(n.tape.below(3))
	switch n.tape.below(9) {
	case 0:
		n.step(managerproc.Manager{Namespace: ns, Term: wrong, Event: manager.Committed{Outcome: storage.Done}})
	case 1:
		n.step(managerproc.Manager{Namespace: ns, Term: wrong, Event: manager.LogEnd{Term: wrong, LSN: math.MaxUint64}})
	case 2:
		n.step(managerproc.Loaded{Namespace: ns, Term: wrong, State: &storage.State{Term: wrong}})
	case 3:
		n.step(managerproc.Loaded{Namespace: ns, Term: wrong})
	case 4:
		n.step(managerproc.Election{Event: byrecord.Slept{}})
	case 5:
		n.step(managerproc.Election{Event: byrecord.Outranked{By: n.record.Term + leasehold.Term(n.tape.below(3))}})
	case 6:
		n.step(managerproc.Election{}) // time passes
	case 7:
		n.step(managerproc.Slept{})
	default:
		if n.tape.below(16) == 0 {
			n.step(managerproc.Election{Event: byrecord.Resign{}})
		}
	}
}

// ownerRequest sends a request of an owner.
func (n *fuzzedNode) ownerRequest() {
	p := n.peers[n.tape.below(len(n.peers))]
	p.seq = protocol.Seq(n.tape.near(uint64(p.seq) + 1))
	r := &protocol.LeaseRequest{Namespace: p.namespace, Holder: p.holder, Seq: p.seq, Term: p.lastReply.Term, Heard: p.lastReply.Seq, Applied: p.lastReply.Seq}
	for _, o := range p.lastReply.Offers {
		r.Leases = append(r.Leases, o.Lease)
	}
	switch n.tape.below(32) {
	case 0:
		r.Holder = nil
	case 1:
		r.Namespace = "unknown"
	case 2:
		r.Leaving, r.Leases = true, nil
	case 3:
		r.Term += leasehold.Term(n.tape.below(3))
	case 4:
		r.Namespace = fuzzNamespaces[n.tape.below(2)] // one session in two namespaces
	}
	n.step(managerproc.Request{LeaseRequest: r})
}

func FuzzNode(f *testing.F) {
	f.Add([]byte{})
	random := rand.New(rand.NewPCG(13, 14))
	for range 40 {
		data := make([]byte, 1000)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { newFuzzedNode(t, data).run() })
}
