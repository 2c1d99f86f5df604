package lookup_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A tape is fuzzed bytes that are read as decisions. It reads zeros after its end.
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

// near returns usual, a number close to it, an extreme, or any number, with decreasing
// probability.
func (t *tape) near(usual uint64) uint64 {
	extremes := []uint64{0, 1, protocol.MaxTerm, math.MaxInt64, 1 << 63, math.MaxUint64}
	switch b := t.byte(); {
	case b < 160:
		return usual
	case b < 224:
		return usual + uint64(b) - 192
	case b < 240:
		return extremes[int(b)%len(extremes)]
	}
	return t.raw()
}

const fuzzNamespace leasehold.Namespace = "fuzz"

const (
	fuzzPoll  = 4 * time.Second
	fuzzStale = 12 * time.Second
)

// A fuzzedLookup is a lookup that receives arbitrary events, the history of the leader's table, and a model of the
// lookup that is derived from its actions.
type fuzzedLookup struct {
	t       *testing.T
	tape    tape
	machine *lookup.Machine
	now     mono.Instant
	wake    mono.Instant

	truth []*table.Table // by LSN
	log   []table.Change
	term  leasehold.Term

	request *protocol.LookupRequest // the newest
	replies []*protocol.LookupReply // for duplicates
	// deceived: it has received a false message that it cannot detect.
	deceived bool

	seen   []published
	losses keyrange.Set // emitted in the current step
	calm   mono.Instant // when it last received a message, or reported the whole key space as lost
	// conservative is Config.ConservativeRecovery; contactLost is from the last Contact.
	conservative, contactLost bool
}

// published is a published table, and a copy of its content at that time.
type published struct{ given, copied *table.Table }

func newFuzzedLookup(t *testing.T, data []byte) *fuzzedLookup {
	l := &fuzzedLookup{t: t, tape: tape{data}, now: mono.Instant(time.Hour), truth: []*table.Table{table.New()}, term: 1}
	l.conservative = l.tape.below(2) == 1
	m, err := lookup.New(l.now, lookup.Config{
		Namespace: fuzzNamespace, ID: 1, Poll: fuzzPoll, Stale: fuzzStale, Rand: rand.New(rand.NewPCG(1, 2)),
		Limits: protocol.Limits{Leases: 8, Changes: 8, Ranges: 64}, ConservativeRecovery: l.conservative,
	})
	if err != nil {
		t.Fatal(err)
	}
	l.machine, l.calm = m, l.now
	l.did(m.Advance(l.now))
	return l
}

// run executes the events on the tape.
func (l *fuzzedLookup) run() {
	for len(l.tape.data) > 0 {
		l.pass()
		switch b := l.tape.below(32); {
		case b < 10:
			l.change()
		case b < 11:
			l.step(lookup.Redirect{NotLeader: protocol.NotLeader{Term: leasehold.Term(l.tape.near(uint64(l.term))), Leader: l.leader()}})
		case b < 12:
			l.step(lookup.Refresh{})
		case b < 13:
			if l.tape.below(2) == 0 {
				l.step(lookup.Refused{Kind: leasehold.Kind(l.tape.below(8))})
				break
			}
			l.step(lookup.Slept{})
		case b < 15:
			if n := len(l.replies); n > 0 {
				l.receive(l.replies[l.tape.below(n)])
			}
		case b < 16:
			l.receive(l.lie())
		case b < 18:
			l.receive(l.broken())
		case b < 24:
			l.receive(l.broadcast())
		default:
			l.receive(l.answer())
		}
	}
	for _, p := range l.seen {
		for k, pair := range keyrange.Diff(p.given.Entries(), p.copied.Entries()) {
			l.t.Fatalf("a published table has changed at %v: %+v was %+v", k, pair[0], pair[1])
		}
	}
}

// pass advances the time: not at all, a little, to the next wake, or far.
func (l *fuzzedLookup) pass() {
	switch b := l.tape.byte(); {
	case b < 100:
	case b < 200:
		l.now = l.now.Add(time.Duration(b) * time.Millisecond)
	case b < 240:
		l.now = max(l.now, min(l.wake, l.now.Add(time.Minute)))
	default:
		l.now = l.now.Add(time.Duration(b-239) * time.Second)
	}
	l.did(l.machine.Advance(l.now))
}

func (l *fuzzedLookup) step(e lookup.Event) { l.did(l.machine.Step(l.now, e)) }

func (l *fuzzedLookup) receive(r *protocol.LookupReply) {
	l.replies = append(l.replies, r)
	l.calm = l.now // or later
	l.step(lookup.Reply{LookupReply: r})
}

// did checks the actions, and that the lookup does not request a wake at the same instant forever.
func (l *fuzzedLookup) did(actions []lookup.Action, wake mono.Instant) {
	l.t.Helper()
	const maxWakes = 16
	for range maxWakes {
		l.check(actions)
		if l.wake = wake; wake > l.now {
			return
		}
		actions, wake = l.machine.Advance(l.now)
	}
	l.t.Fatalf("at %v the next wake is at %v, after %d wakes", l.now, wake, maxWakes)
}

func (l *fuzzedLookup) check(actions []lookup.Action) {
	l.t.Helper()
	before := l.last()
	l.losses = nil
	for _, a := range actions {
		switch a := a.(type) {
		case lookup.Publish:
			l.seen = append(l.seen, published{a.Table, a.Table.Clone()})
		case lookup.Losses:
			l.lost(a.Losses)
		case lookup.Send:
			l.sent(a.Request)
		case lookup.Contact:
			if a.Lost == l.contactLost || before == nil {
				l.t.Fatalf("%+v, and contact lost before: %t", a, l.contactLost)
			}
			l.contactLost = a.Lost
		case lookup.Note:
			if int(a.What) >= lookup.Notables() || a.What.String() == "" {
				l.t.Fatalf("note %d without a name", a.What)
			}
		}
	}
	after := l.last()
	if l.machine.Table() != after {
		l.t.Fatal("the table is not the last published one")
	}
	if after != nil && l.now.Sub(l.calm) > fuzzStale && (l.conservative || !l.contactLost) {
		l.t.Fatalf("no message since %v, and contact is not lost at %v", l.calm, l.now)
	}
	if after != before {
		l.moved(before, after)
	}
}

// last returns the last published table, nil if there is none.
func (l *fuzzedLookup) last() *table.Table {
	if len(l.seen) == 0 {
		return nil
	}
	return l.seen[len(l.seen)-1].given
}

// moved checks a new table: it is newer and correct, and exactly the losses since the previous one were
// emitted.
func (l *fuzzedLookup) moved(before, after *table.Table) {
	l.t.Helper()
	if before != nil && after.LSN() <= before.LSN() {
		l.t.Fatalf("table at LSN %d is followed by LSN %d", before.LSN(), after.LSN())
	}
	if l.deceived {
		return
	}
	for k, pair := range keyrange.Diff(after.Entries(), l.truth[after.LSN()].Entries()) {
		l.t.Fatalf("at LSN %d it has %+v at %v, the leader has %+v", after.LSN(), pair[0], k, pair[1])
	}
	if before == nil {
		return // there was no table before
	}
	var happened keyrange.Set
	for _, c := range l.log[before.LSN():after.LSN()] {
		if loss, ok := c.Loss(); ok {
			happened = happened.Union(keyrange.NewSet(loss.Range))
		}
	}
	if missed := happened.Subtract(l.losses); missed != nil {
		l.t.Fatalf("from LSN %d to %d the loss of %v is not emitted", before.LSN(), after.LSN(), missed)
	}
	if invented := l.losses.Subtract(happened); invented != nil {
		l.t.Fatalf("from LSN %d to %d a loss of %v is emitted, and there is none", before.LSN(), after.LSN(), invented)
	}
}

func (l *fuzzedLookup) lost(losses []leasehold.Loss) {
	l.t.Helper()
	if len(losses) == 0 {
		l.t.Fatal("Losses without losses")
	}
	for _, loss := range losses {
		if !loss.Range.Valid() {
			l.t.Fatalf("invalid loss %v", loss)
		}
		if loss.Cause == leasehold.CauseContact {
			if !l.conservative || !l.contactLost {
				l.t.Fatalf("loss %v, and contact lost: %t", loss, l.contactLost)
			}
			l.calm = l.now
			continue
		}
		l.losses = l.losses.Union(keyrange.NewSet(loss.Range))
	}
}

func (l *fuzzedLookup) sent(r *protocol.LookupRequest) {
	l.t.Helper()
	if err := r.Validate(); err != nil {
		l.t.Fatalf("invalid request: %v", err)
	}
	if l.request != nil && r.Seq != l.request.Seq+1 || r.LSN != 0 && r.LSN != l.machine.LSN() {
		l.t.Fatalf("request %+v at LSN %d", r, l.machine.LSN())
	}
	l.request = r
}

// change adds a change to the history: a vacant range is granted, or a part of a held range is vacated or
// moved.
func (l *fuzzedLookup) change() {
	now := l.truth[len(l.truth)-1]
	r, e := now.At(leasehold.Key(l.tape.byte()) << 56)
	if r.Size() > 8 && l.tape.below(2) == 0 {
		r.Start += leasehold.Key(r.Size() / 4)
	}
	if r.Size() > 8 && l.tape.below(2) == 0 {
		r.Limit = r.Start + leasehold.Key(r.Size()/2)
	}
	c := table.Change{LSN: now.LSN() + 1, Kind: table.Vacated, Range: r, Generation: e.Generation, Holder: e.Holder, Cause: leasehold.CauseExpired}
	if e.Vacant() {
		c = table.Change{LSN: now.LSN() + 1, Kind: table.Granted, Range: r, Generation: now.Newest() + 1, Holder: fuzzHolder(l.tape.below(4))}
	} else if l.tape.below(3) == 0 {
		c = table.Change{LSN: now.LSN() + 1, Kind: table.Moved, Range: r, Generation: now.Newest() + 1, Holder: fuzzHolder(l.tape.below(4)), From: e.Holder}
	}
	next := now.Clone()
	if err := next.Apply(&c); err != nil {
		l.t.Fatal(err)
	}
	l.truth, l.log = append(l.truth, next), append(l.log, c)
}

// fuzzHolder returns one of four holders. They are shared, because entries are compared by
// pointer.
func fuzzHolder(i int) *table.Holder { return fuzzHolders[i] }

var fuzzHolders = []*table.Holder{
	{Owner: "a", Session: leasehold.Session{1}, Addr: "a", Weight: 1},
	{Owner: "b", Session: leasehold.Session{2}, Addr: "b", Weight: 1},
	{Owner: "c", Session: leasehold.Session{3}, Addr: "c", Weight: 1},
	{Owner: "d", Session: leasehold.Session{4}, Addr: "d", Weight: 1},
}

func (l *fuzzedLookup) leader() storage.ManagerID {
	return []storage.ManagerID{"m1", "m1", "m2", ""}[l.tape.below(4)]
}

// answer returns the reply of a correct leader to the newest request, or to one with another
// LSN.
func (l *fuzzedLookup) answer() *protocol.LookupReply {
	end := l.truth[len(l.truth)-1]
	if l.tape.below(16) == 0 {
		l.term++
	}
	r := &protocol.LookupReply{Namespace: fuzzNamespace, Leader: l.leader(), Term: l.term, LSN: end.LSN(), From: l.request.LSN, Echo: l.request.Seq}
	if l.tape.below(4) == 0 {
		r.Age = time.Duration(l.tape.byte()) * 100 * time.Millisecond
	}
	switch missing := l.log[min(r.From, leasehold.LSN(len(l.log))):]; {
	case r.From > r.LSN:
		r.From = r.LSN // the lookup was deceived
	case r.From == r.LSN:
	case len(missing) <= 8 && l.tape.below(2) == 0 && r.From != 0:
		r.Changes = missing
	default:
		r.Snapshot = end
	}
	return r
}

// broadcast returns unsolicited changes, the newest or earlier ones.
func (l *fuzzedLookup) broadcast() *protocol.LookupReply {
	to := len(l.log) - l.tape.below(3)
	from := to - l.tape.below(4)
	if from < 0 || to <= from {
		return l.answer()
	}
	return &protocol.LookupReply{
		Namespace: fuzzNamespace, Leader: l.leader(), Term: l.term,
		LSN: leasehold.LSN(to), From: leasehold.LSN(from), Changes: l.log[from:to],
	}
}

// broken returns a message that no correct leader sends, and that the lookup can
// detect.
func (l *fuzzedLookup) broken() *protocol.LookupReply {
	r := *l.answer()
	switch l.tape.below(10) {
	case 0:
		r.Namespace = []leasehold.Namespace{"other", "", "NOT A NAME"}[l.tape.below(3)]
	case 1:
		r.Term = []leasehold.Term{0, protocol.MaxTerm + 1, math.MaxUint64}[l.tape.below(3)]
	case 2:
		r.Age = -1 - time.Duration(l.tape.byte())
	case 3:
		r.Age = math.MaxInt64
	case 4:
		r.Changes, r.Snapshot = l.log, l.truth[0]
	case 5:
		r.Changes, r.Snapshot, r.From = l.log, nil, 1
	case 6:
		r.Changes, r.Snapshot = make([]table.Change, 3), nil
	case 7: // only its LSN is the next one
		at := l.machine.LSN()
		r.From, r.LSN, r.Snapshot = at, at+1, nil
		r.Changes = []table.Change{{LSN: at + 1, Kind: table.Kind(l.tape.below(4)), Range: leasehold.Range{Start: 2, Limit: 1}}}
	case 8:
		at := l.machine.LSN()
		r.From, r.LSN, r.Snapshot = at, at+2, nil
		r.Changes = slices.Repeat([]table.Change{{LSN: at + 1, Kind: table.Vacated, Generation: math.MaxUint64, Holder: fuzzHolder(0)}}, 2)
		r.Changes[1].LSN++
	default:
		r.Echo = protocol.Seq(l.tape.near(uint64(r.Echo) + 9)) // a reply to a request that was not sent
		l.deceived = l.deceived || r.Echo == l.request.Seq
	}
	return &r
}

// lie returns a message with a false history, or with a future one.
func (l *fuzzedLookup) lie() *protocol.LookupReply {
	l.deceived = true
	r := *l.answer()
	r.Term = leasehold.Term(l.tape.near(uint64(r.Term)))
	switch l.tape.below(3) {
	case 0:
		r.LSN = leasehold.LSN(l.tape.near(uint64(r.LSN)))
	case 1:
		var b keyrange.Builder[table.Entry]
		b.Append(0, table.Entry{Generation: 1, Holder: fuzzHolder(0), Lost: leasehold.LSN(l.tape.below(3))})
		b.Append(1<<60, table.Entry{Lost: leasehold.LSN(l.tape.below(3))})
		r.LSN = leasehold.LSN(l.tape.near(uint64(r.LSN) + 1))
		t, err := table.Restore(r.LSN, 1, b.Map())
		if err != nil {
			return &r
		}
		r.Snapshot, r.Changes = t, nil
	default:
		at := l.machine.LSN()
		r.From, r.LSN, r.Snapshot = at, at+1, nil
		r.Changes = []table.Change{{
			LSN: at + 1, Kind: table.Granted, Range: leasehold.Range{Start: leasehold.Key(l.tape.byte()) << 56},
			Generation: leasehold.Generation(l.tape.near(1000)), Holder: fuzzHolder(1),
		}}
	}
	return &r
}

func FuzzLookup(f *testing.F) {
	f.Add([]byte{})
	random := rand.New(rand.NewPCG(9, 10))
	for range 40 {
		data := make([]byte, 600)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { newFuzzedLookup(t, data).run() })
}
