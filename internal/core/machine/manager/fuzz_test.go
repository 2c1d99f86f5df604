package manager_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
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

func (t *tape) raw() uint64 {
	var b [8]byte
	t.data = t.data[copy(b[:], t.data):]
	return binary.LittleEndian.Uint64(b[:])
}

// near returns a number that is likely to be usual, may be next to it or extreme, and can be any.
func (t *tape) near(usual uint64) uint64 {
	extremes := []uint64{0, 1, math.MaxInt64, 1 << 63, math.MaxUint64}
	switch b := t.byte(); {
	case b < 200:
		return usual
	case b < 240:
		return usual + uint64(b) - 220
	case b < 250:
		return extremes[int(b)%len(extremes)]
	}
	return t.raw()
}

const (
	fuzzNamespace = leasehold.Namespace("fuzz")
	fuzzOwners    = 5 // limit at a time
	fuzzLog       = 16
	fuzzSlots     = 48 // limit of the policy's ranges
)

// A fuzzedLeader is a leader with arbitrary events, and a model of its state that is derived from its actions. When
// it is deposed, another leader takes over from the store.
type fuzzedLeader struct {
	t       *testing.T
	tape    tape
	machine *manager.Machine
	now     mono.Instant
	wake    mono.Instant

	term      leasehold.Term
	authority mono.Instant
	cfg       manager.Config
	seq       protocol.Seq // its newest message
	inherited int          // changes and sessions that it found in the store
	over      bool

	stored     *table.Table  // the stored table
	base       leasehold.LSN // LSN of the table before the log; 0 if the log is complete
	log        []table.Change
	unfinished bool           // the last batch was unfinished
	asked      *storage.Batch // the newest batch sent
	batch      *storage.Batch // the same while its outcome is pending
	reading    bool           // a read of the log's end is pending

	misled bool // the policy returns invalid results
	orders int  // orders sent
	done   []doneReport

	peers []*fuzzedPeer
	// trusted is until when the holder of a generation may rely on it, on the leader's clock.
	trusted map[leasehold.Generation]mono.Instant
}

// A fuzzedPolicy sometimes returns an invalid result or an error.
type fuzzedPolicy struct {
	partition.Consistent
	leader *fuzzedLeader
}

func (p fuzzedPolicy) Assign(in partition.Input) (partition.Assignment, error) {
	if !p.leader.misled {
		return p.Consistent.Assign(in)
	}
	if p.leader.tape.below(2) == 0 {
		return nil, leasehold.Errorf("policy", leasehold.ErrInternal, "", "policy failed")
	}
	return partition.Assignment{{Owner: "nobody"}}, nil
}

// A fuzzedPeer is a session that mostly follows the protocol.
type fuzzedPeer struct {
	holder *table.Holder
	seq    protocol.Seq
	last   *protocol.LeaseReply // newest reply read, never nil
	unread *protocol.LeaseReply

	echo     protocol.Seq // its newest accepted request
	accepted mono.Instant // when that was

	reports []protocol.MoveReport
	imports []protocol.Import
	parting bool
}

func newFuzzedLeader(t *testing.T, data []byte) *fuzzedLeader {
	l := &fuzzedLeader{t: t, tape: tape{data}, now: mono.Instant(time.Hour), stored: table.New()}
	l.takeOver()
	return l
}

// takeOver starts a leader on the stored state.
func (l *fuzzedLeader) takeOver() {
	state := &storage.State{Table: l.stored.Clone()}
	if n := l.tape.below(4); n > 0 && len(l.log) > n && l.base == 0 { // a log without a snapshot
		state = &storage.State{Changes: l.log}
	}
	l.term++
	state.Term, state.Unfinished = l.term, l.unfinished
	cfg := manager.Config{
		Namespace: fuzzNamespace, Self: "m", Policy: fuzzedPolicy{partition.Consistent{VirtualNodes: 1 + l.tape.below(4)}, l},
		Timing: l.timing(), Promised: protocol.DefaultTiming().Hold(),
		Limits:    protocol.Limits{Leases: 1 << 12, Changes: 1 << 12, Ranges: fuzzSlots},
		MaxOwners: fuzzOwners,
		Moves:     1 + l.tape.below(fuzzMoves), MoveTimeout: time.Duration(1+l.tape.below(60)) * time.Second, Seams: 1 + l.tape.below(8),
		Log: manager.LogLimits{
			Changes: fuzzLog, Age: time.Minute, BatchChanges: 4 + l.tape.below(8), SnapshotEvery: 1 + l.tape.below(8),
		},
		Rand: rand.New(rand.NewPCG(1, 2)),
	}
	switch l.tape.below(16) { // the store may have been restored
	case 0:
		cfg.Takeover.Uncertain = true
	case 1:
		cfg.Takeover.Floor = uint64(l.stored.LSN()) + uint64(l.tape.byte())
	}
	l.cfg = cfg
	l.authority = l.now.Add(time.Minute)
	m, err := manager.New(l.now, cfg, l.term, l.authority, state)
	if err != nil {
		l.t.Fatal(err)
	}
	l.machine, l.seq, l.asked, l.batch, l.reading, l.over = m, 0, nil, nil, false, false
	l.trusted = make(map[leasehold.Generation]mono.Instant)
	for _, e := range l.stored.All() {
		l.trusted[e.Generation] = l.now.Add(cfg.Promised)
	}
	for _, p := range l.peers {
		p.echo = 0
	}
	l.inherited = len(state.Changes) + l.stored.Len()
	l.did(m.Advance(l.now))
}

// run executes the tape.
func (l *fuzzedLeader) run() {
	for len(l.tape.data) > 0 {
		if l.over {
			l.takeOver()
		}
		l.pass()
		switch b := l.tape.below(32); {
		case b < 4:
			l.commit()
		case b < 6:
			l.readEnd()
		case b < 8:
			until := l.now.Add(time.Duration(l.tape.below(20)-2) * time.Second)
			l.authority = max(l.authority, until)
			l.step(manager.Authority{Until: until})
		case b < 10:
			l.step(manager.Lookup{LookupRequest: &protocol.LookupRequest{
				Namespace: l.namespace(), Lookup: l.tape.near(1),
				Seq: protocol.Seq(l.tape.near(1)), LSN: leasehold.LSN(l.tape.near(uint64(l.stored.LSN()))),
			}})
		case b < 11:
			l.addPeer()
		case b < 12:
			l.misled = l.tape.below(4) == 0
			l.order()
		case b < 13:
			l.cfg.Timing = l.timing()
			l.step(manager.Reconfigured{Config: l.cfg})
		default:
			l.receive(b)
		}
		l.checkSizes()
	}
}

// timing returns the usual timing, or a shorter one.
func (l *fuzzedLeader) timing() protocol.Timing {
	t := protocol.DefaultTiming()
	t.Lease /= time.Duration(1 + l.tape.below(4))
	t.Renew = t.Lease / 4
	return t
}

// pass lets time pass: none, a little, up to the wake, or much.
func (l *fuzzedLeader) pass() {
	switch b := l.tape.byte(); {
	case b < 100:
	case b < 200:
		l.now = l.now.Add(time.Duration(b) * time.Millisecond)
	case b < 240:
		l.now = max(l.now, min(l.wake, l.now.Add(time.Minute)))
	default:
		l.now = l.now.Add(time.Duration(b-239) * 5 * time.Second)
	}
	l.did(l.machine.Advance(l.now))
}

func (l *fuzzedLeader) step(e manager.Event) { l.did(l.machine.Step(l.now, e)) }

// did checks the leader's actions, and that it does not spin.
func (l *fuzzedLeader) did(actions []manager.Action, wake mono.Instant) {
	l.t.Helper()
	const patience = 16
	for range patience {
		for _, a := range actions {
			l.check(a)
		}
		if l.wake = wake; wake > l.now {
			return
		}
		actions, wake = l.machine.Advance(l.now)
	}
	l.t.Fatalf("at %v the next wake-up is %v, after %d of them", l.now, wake, patience)
}

// underWay reports whether the leader has a pending batch.
func (l *fuzzedLeader) underWay() bool {
	return l.asked != nil && l.asked.Last() > l.machine.Table().LSN()
}

func (l *fuzzedLeader) check(a manager.Action) {
	l.t.Helper()
	if l.over {
		l.t.Fatalf("action %T after it was deposed", a)
	}
	switch a := a.(type) {
	case manager.Send:
		l.sent(a.Reply)
	case manager.Answer:
		l.answered(a.Reply)
		if l.now >= l.authority {
			l.t.Fatal("a reply to a lookup without authority")
		}
	case manager.Broadcast:
		l.answered(a.Reply)
	case manager.Commit:
		l.committing(a.Batch)
	case manager.ReadEnd:
		l.reading = true
	case manager.SaveSnapshot:
		if a.Snapshot.Term != l.term || a.Snapshot.Table.LSN() > l.stored.LSN() {
			l.t.Fatalf("a snapshot of term %d at LSN %d, in term %d at %d", a.Snapshot.Term, a.Snapshot.Table.LSN(), l.term, l.stored.LSN())
		}
	case manager.Deposed:
		l.over = true
	case manager.Note:
		if int(a.What) >= manager.Notables() || a.What.String() == "" {
			l.t.Fatalf("a note without a name: %d", a.What)
		}
	}
}

// sent checks a message to an owner: it is valid, numbered, sent with authority, and offers only committed leases.
func (l *fuzzedLeader) sent(r *protocol.LeaseReply) {
	l.t.Helper()
	if err := r.Validate(protocol.DefaultLimits); err != nil {
		l.t.Fatalf("an invalid message was sent: %v", err)
	}
	if l.now >= l.authority {
		l.t.Fatal("a message was sent without authority")
	}
	if r.Term != l.term || r.Seq <= l.seq {
		l.t.Fatalf("message %d of term %d after %d of term %d", r.Seq, r.Term, l.seq, l.term)
	}
	l.seq = r.Seq
	l.checkOrders(r)
	for _, o := range r.Offers {
		for part, e := range l.stored.Within(o.Range) {
			if e.Vacant() || e.Generation != o.Generation || e.Holder.Session != r.Session {
				l.t.Fatalf("%v is offered to %v, and the store has %v with %v at %d", o.Lease, r.Session.Short(), part, e.Holder, e.Generation)
			}
		}
	}
	for _, p := range l.peers {
		if p.holder.Session == r.Session {
			p.unread = r
			l.trust(p, r)
		}
	}
}

// trust records until when the owner may rely on its offers: from the time when it sent the echoed request, so at
// latest from when that was accepted.
func (l *fuzzedLeader) trust(p *fuzzedPeer, r *protocol.LeaseReply) {
	if p.echo == 0 || r.Echo != p.echo {
		return
	}
	for _, o := range r.Offers {
		l.trusted[o.Generation] = max(l.trusted[o.Generation], p.accepted.Add(r.Timing.Hold()))
	}
}

// answered checks a message to lookups: it is valid and matches the store.
func (l *fuzzedLeader) answered(r *protocol.LookupReply) {
	l.t.Helper()
	if err := r.Validate(protocol.DefaultLimits); err != nil {
		l.t.Fatalf("an invalid message was sent: %v", err)
	}
	if r.LSN > l.stored.LSN() || r.Term != l.term {
		l.t.Fatalf("LSN %d in term %d, and the store is at %d in %d", r.LSN, r.Term, l.stored.LSN(), l.term)
	}
	for _, c := range r.Changes {
		if there := l.log[c.LSN-l.base-1]; c != there {
			l.t.Fatalf("changes %v, and the log has %v", c.String(), there.String())
		}
	}
	if r.Snapshot != nil && r.LSN == l.stored.LSN() {
		for k, pair := range keyrange.Diff(r.Snapshot.Entries(), l.stored.Entries()) {
			l.t.Fatalf("the snapshot has %+v at %v, and the store %+v", pair[0], k, pair[1])
		}
	}
}

// committing checks a batch: it follows the stored log, no other is pending, and no lease ends before its deadline.
func (l *fuzzedLeader) committing(b *storage.Batch) {
	l.t.Helper()
	if l.batch != nil || b.Term != l.term || b.Namespace != fuzzNamespace || (len(b.Changes) == 0) != (b.Base != nil) {
		l.t.Fatalf("batch %+v, in term %d, while %+v is pending", b, l.term, l.batch)
	}
	l.asked, l.batch = b, b
	if b.Prev != l.stored.LSN() {
		if b.Last() != l.stored.LSN() {
			l.t.Fatalf("a batch from %d to %d, and the log ends at %d", b.Prev, b.Last(), l.stored.LSN())
		}
		return // sent again, and already stored
	}
	if b.Base != nil {
		l.renumbering(b.Base)
		return
	}
	if l.unfinished {
		l.t.Fatalf("batch %+v before the next gap", b)
	}
	trial := l.stored.Clone()
	for i := range b.Changes {
		c := &b.Changes[i]
		if err := trial.Apply(c); err != nil {
			l.t.Fatal(err)
		}
		l.checkMoved(c)
		if until := l.trusted[c.Generation]; c.Cause == leasehold.CauseExpired && l.now < until {
			l.t.Fatalf("at %v, %v, which its holder may rely on until %v", l.now, c.String(), until)
		}
	}
}

// renumbering checks a table that replaces the log: it has the same leases at higher numbers.
func (l *fuzzedLeader) renumbering(base *table.Table) {
	l.t.Helper()
	if base.LSN() <= l.stored.LSN() || base.Newest() < l.stored.Newest() {
		l.t.Fatalf("a table at LSN %d, newest generation %d, and the store is at %d, %d", base.LSN(), base.Newest(), l.stored.LSN(), l.stored.Newest())
	}
	for r, pair := range keyrange.Zip(base.Entries(), l.stored.Entries()) {
		if pair.A.Generation != pair.B.Generation || pair.A.Holder != pair.B.Holder {
			l.t.Fatalf("%v is renumbered to %+v from %+v", r, pair.A, pair.B)
		}
	}
}

// commit decides the outcome of the pending batch, and the result that the leader gets.
func (l *fuzzedLeader) commit() {
	b := l.batch
	if b == nil {
		if !l.reading {
			l.step(manager.Committed{Outcome: storage.Outcome(l.tape.byte())}) // unsolicited
		}
		return
	}
	there := b.Prev != l.stored.LSN()
	outcome, land := storage.Done, true
	switch l.tape.below(8) {
	case 0:
		outcome = storage.Unknown
	case 1:
		outcome, land = storage.Unknown, false
	}
	if there && outcome == storage.Done {
		outcome = storage.Conflict // its own first attempt was faster
	}
	if land && !there {
		l.land(b)
	}
	l.batch = nil
	l.step(manager.Committed{Outcome: outcome})
}

func (l *fuzzedLeader) land(b *storage.Batch) {
	if b.Base != nil {
		l.stored, l.base, l.log, l.unfinished = b.Base.Clone(), b.Base.LSN(), nil, b.Unfinished
	}
	for i := range b.Changes {
		if err := l.stored.Apply(&b.Changes[i]); err != nil {
			l.t.Fatal(err)
		}
		l.log = append(l.log, b.Changes[i])
	}
}

// readEnd sends the end of the log, solicited or not.
func (l *fuzzedLeader) readEnd() {
	e := manager.LogEnd{Term: l.term, LSN: l.stored.LSN()}
	switch l.tape.below(8) {
	case 0:
		e.Err = true
	case 1:
		e.Term += leasehold.Term(l.tape.below(3))
	case 2:
		if !l.underWay() {
			e.LSN = leasehold.LSN(l.tape.near(uint64(e.LSN)))
		}
	}
	l.reading = false
	l.step(e)
}

// addPeer adds a session. Some have the name of another, some the session of another.
func (l *fuzzedLeader) addPeer() {
	if len(l.peers) >= 4*fuzzOwners {
		l.peers = l.peers[1:]
	}
	b := l.tape.byte()
	l.peers = append(l.peers, &fuzzedPeer{
		holder: &table.Holder{
			Owner: leasehold.OwnerID([]string{"a", "b", "c", "d"}[b%4]), Session: leasehold.Session{1 + b%16},
			Addr: "x", Weight: []float64{1, 0.001, 2, 1000}[l.tape.below(4)],
		},
		last: &protocol.LeaseReply{},
	})
}

// receive passes a request of a peer to the leader.
func (l *fuzzedLeader) receive(how int) {
	if len(l.peers) == 0 {
		l.addPeer()
	}
	p := l.peers[l.tape.below(len(l.peers))]
	if how%4 != 0 && p.unread != nil {
		p.last, p.unread = p.unread, nil
	}
	p.seq = protocol.Seq(l.tape.near(uint64(p.seq) + 1))
	r := &protocol.LeaseRequest{
		Namespace: fuzzNamespace, Holder: p.holder, Seq: p.seq, Term: p.last.Term, Mover: l.mover(p),
		Heard: protocol.Seq(l.tape.near(uint64(p.last.Seq))), Leases: l.leases(p.last.Offers),
	}
	r.Applied = r.Heard
	l.move(p, r)
	switch l.tape.below(32) {
	case 0:
		r.Leaving, r.Leases = true, nil
	case 1:
		r.Gone = leasehold.Session{1 + l.tape.byte()%16}
	case 2:
		r.Namespace = l.namespace()
	case 3:
		r.Holder = []*table.Holder{nil, {}, {Owner: "a", Session: p.holder.Session, Addr: "x", Weight: math.NaN()}}[l.tape.below(3)]
	case 4:
		r.Term = leasehold.Term(l.tape.near(uint64(r.Term)))
	case 5:
		r.Applied = protocol.Seq(l.tape.near(uint64(r.Applied)))
	case 6:
		r.Leases = append(r.Leases, leasehold.Lease{Range: leasehold.Range{Start: 9, Limit: 3}, Generation: 1})
	case 7:
		r.Leases = append(r.Leases, leasehold.Lease{Range: leasehold.All, Generation: leasehold.Generation(l.tape.near(1))})
	}
	actions, wake := l.machine.Step(l.now, manager.Request{LeaseRequest: r})
	for _, a := range actions {
		if s, ok := a.(manager.Send); ok && s.Reply.Session == p.holder.Session && s.Reply.Echo == r.Seq && r.Seq > p.echo {
			p.echo, p.accepted = r.Seq, l.now
		}
	}
	l.did(actions, wake)
}

// leases returns the offered leases, or parts of them.
func (l *fuzzedLeader) leases(offers []protocol.Offer) []leasehold.Lease {
	var out []leasehold.Lease
	for _, o := range offers {
		switch b := l.tape.byte(); {
		case b < 200:
			out = append(out, o.Lease)
		case b < 210 && o.Range.Size() > 3:
			o.Range.Start += leasehold.Key(o.Range.Size() / 3)
			out = append(out, o.Lease)
		case b < 220:
			o.Generation = leasehold.Generation(l.tape.near(uint64(o.Generation)))
			out = append(out, o.Lease)
		}
	}
	return slices.Clip(out)
}

func (l *fuzzedLeader) namespace() leasehold.Namespace {
	return []leasehold.Namespace{fuzzNamespace, fuzzNamespace, fuzzNamespace, "other", "", "NOT A NAME"}[l.tape.below(6)]
}

// checkSizes checks invariant I8, and that the leader's table is the committed one.
func (l *fuzzedLeader) checkSizes() {
	l.t.Helper()
	s := l.machine.Sizes()
	for _, b := range []struct {
		what       string
		have, most int
	}{
		{"sessions", s.Sessions, 2*fuzzOwners + l.inherited}, // silent sessions do not count towards the limit
		{"seats", s.Seats, s.Sessions},
		{"planned ranges", s.Planned, fuzzSlots + 2*s.Ranges + 2*l.orders},
		{"moves", s.Moves, s.Sessions * fuzzMoves},
		{"waiting moves", s.Backlog, 4 * (s.Ranges + fuzzSlots)},
		{"changes", s.Log, max(fuzzLog, l.inherited)},
		{"freed leases", s.Freed, 4 * (s.Ranges + fuzzSlots)},
	} {
		if b.have > b.most {
			l.t.Fatalf("there are %d %s, want at most %d", b.have, b.what, b.most)
		}
	}
	if tab := l.machine.Table(); tab.LSN() == l.stored.LSN() {
		for k, pair := range keyrange.Diff(tab.Entries(), l.stored.Entries()) {
			l.t.Fatalf("the table has %+v at %v, and the store %+v", pair[0], k, pair[1])
		}
	} else if tab.LSN() > l.stored.LSN() {
		l.t.Fatalf("the table is at LSN %d, and the store at %d", tab.LSN(), l.stored.LSN())
	}
}

func FuzzManager(f *testing.F) {
	f.Add([]byte{})
	random := rand.New(rand.NewPCG(7, 8))
	for i := range 60 {
		data := make([]byte, 1500)
		for j := range data {
			data[j] = byte(random.Uint32())
			if i%3 > 0 && random.IntN(3) > 0 {
				data[j] %= 100 // the usual values
			}
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { newFuzzedLeader(t, data).run() })
}
