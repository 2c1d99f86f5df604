package owner_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
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
	extremes := []uint64{0, 1, protocol.MaxTerm - 1, protocol.MaxTerm, protocol.MaxTerm + 1, math.MaxInt64, 1 << 63, math.MaxUint64}
	switch b := t.byte(); {
	case b < 128:
		return usual
	case b < 192:
		return usual + uint64(b) - 160
	case b < 240:
		return extremes[int(b)%len(extremes)]
	}
	return t.raw()
}

const fuzzNamespace leasehold.Namespace = "fuzz"

var fuzzSession = leasehold.Session{7}

// A fuzzedOwner is an owner that receives arbitrary events, and a model of its state that is derived from its
// actions.
type fuzzedOwner struct {
	t       *testing.T
	tape    tape
	machine *owner.Machine
	now     mono.Instant
	wake    mono.Instant

	view    *owner.View // last published
	newest  leasehold.Generation
	seq     protocol.Seq // of its newest request
	sentAt  mono.Instant
	lastSeq protocol.Seq // newest sequence number of a leader's reply
	term    leasehold.Term
	left    bool
	replies []*protocol.LeaseReply // for duplicates
	moves   fuzzedMoves
}

func newFuzzedOwner(t *testing.T, data []byte) *fuzzedOwner {
	o := &fuzzedOwner{t: t, tape: tape{data}, now: mono.Instant(time.Hour), term: 1}
	m, err := owner.New(o.now, owner.Config{
		Namespace: fuzzNamespace, Rand: rand.New(rand.NewPCG(1, uint64(len(data)))), Mover: []string{"a", ""}[len(data)%8/7],
		Holder: &table.Holder{Owner: "o", Session: fuzzSession, Addr: "a", Weight: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	o.machine, o.view, o.moves = m, m.View(), newFuzzedMoves()
	o.did(m.Advance(o.now))
	return o
}

// run executes the events on the tape.
func (o *fuzzedOwner) run() {
	for len(o.tape.data) > 0 {
		o.pass()
		switch o.tape.below(24) {
		case 0:
			o.step(owner.Redirect{NotLeader: protocol.NotLeader{Term: leasehold.Term(o.tape.near(uint64(o.term))), Leader: o.leader()}})
		case 1:
			if o.tape.below(2) == 0 {
				o.step(owner.Refused{Kind: leasehold.Kind(o.tape.below(8))})
				break
			}
			o.step(owner.Slept{})
		case 2:
			o.step(owner.PredecessorGone{Session: o.session()})
		case 3:
			if o.tape.below(8) == 0 {
				o.step(owner.Leave{})
			} else if o.tape.below(4) == 0 {
				o.step(owner.Part{})
			}
		case 6, 7, 8, 9, 10, 11:
			o.stepMove()
		case 4, 5:
			if n := len(o.replies); n > 0 {
				o.step(owner.Reply{LeaseReply: o.replies[o.tape.below(n)]})
			}
		default:
			r := o.reply()
			o.replies = append(o.replies, r)
			o.step(owner.Reply{LeaseReply: r})
		}
	}
}

// pass advances the time: not at all, a little, to the next wake, or far.
func (o *fuzzedOwner) pass() {
	switch b := o.tape.byte(); {
	case b < 64:
	case b < 160:
		o.now = o.now.Add(time.Duration(b) * time.Millisecond)
	case b < 240:
		o.now = max(o.now, min(o.wake, o.now.Add(24*time.Hour)))
	default:
		o.now = o.now.Add(time.Duration(b-239) * 10 * time.Second)
	}
	o.did(o.machine.Advance(o.now))
}

func (o *fuzzedOwner) step(e owner.Event) { o.did(o.machine.Step(o.now, e)) }

// did checks the actions, and that the owner does not request a wake at the same instant forever.
func (o *fuzzedOwner) did(actions []owner.Action, wake mono.Instant) {
	const maxWakes = 16
	for range maxWakes {
		o.check(actions)
		if o.wake = wake; wake > o.now {
			return
		}
		actions, wake = o.machine.Advance(o.now)
	}
	o.t.Fatalf("at %v the next wake is at %v, after %d wakes", o.now, wake, maxWakes)
}

func (o *fuzzedOwner) check(actions []owner.Action) {
	o.t.Helper()
	for _, a := range actions {
		o.checkMove(a)
		switch a := a.(type) {
		case owner.Publish:
			o.published(a.View)
		case owner.Send:
			o.sent(a.Request)
		case owner.GrantedLeases:
			if len(a.Leases) == 0 {
				o.t.Fatal("GrantedLeases without leases")
			}
		case owner.RevokedLeases:
			if len(a.Leases) == 0 || a.Cause == leasehold.CauseUnknown {
				o.t.Fatalf("RevokedLeases with %d leases and cause %v", len(a.Leases), a.Cause)
			}
		case owner.FindPredecessor:
			if a.Incumbent == nil {
				o.t.Fatal("FindPredecessor without an incumbent")
			}
		case owner.Left:
			if o.left {
				o.t.Fatal("Left twice")
			}
			o.left = true
		case owner.Note:
			if int(a.What) >= owner.Notables() || a.What.String() == "" {
				o.t.Fatalf("note %d without a name", a.What)
			}
		}
	}
	o.checkView()
	if o.machine.View() != o.view {
		o.t.Fatal("the view is not the last published one")
	}
	if len(o.view.Leases) > 0 && o.now >= o.view.Until != o.machine.Suspended() {
		o.t.Fatalf("at %v: leases until %v, suspended: %t", o.now, o.view.Until, o.machine.Suspended())
	}
}

// published checks a new view: it is sorted, its deadline is within the limit, and it contains no generation that
// was dropped before.
func (o *fuzzedOwner) published(v *owner.View) {
	o.t.Helper()
	newest := o.newest
	for i, l := range v.Kept {
		if !l.Range.Valid() || l.Generation == 0 {
			o.t.Fatalf("invalid lease %v", l)
		}
		if i > 0 && (v.Kept[i-1].Range.Limit == 0 || v.Kept[i-1].Range.Limit > l.Range.Start) {
			o.t.Fatalf("lease %v follows %v", l, v.Kept[i-1])
		}
		newest = max(newest, l.Generation)
	}
	if len(v.Leases) > 0 && v.Until > o.sentAt.Add(protocol.MaxLease) {
		o.t.Fatalf("deadline %v, and the newest request was sent at %v", v.Until, o.sentAt)
	}
	for _, l := range protocol.Missing(v.Leases, v.Kept) {
		o.t.Fatalf("%v is served, and not in Kept", l)
	}
	for _, l := range protocol.Missing(v.Kept, o.view.Kept) {
		if l.Generation <= o.newest && !o.moves.installed(l) {
			o.t.Fatalf("%v is not newer than generation %d", l, o.newest)
		}
	}
	o.view, o.newest = v, newest
}

// sent checks a request: it is valid, contains the held leases, and has the next sequence
// number.
func (o *fuzzedOwner) sent(r *protocol.LeaseRequest) {
	o.t.Helper()
	if err := r.Validate(protocol.DefaultLimits); err != nil {
		o.t.Fatalf("invalid request: %v", err)
	}
	if r.Seq != o.seq+1 || len(protocol.Missing(o.view.Kept, r.Leases)) > 0 {
		o.t.Fatalf("request %d with leases %v after request %d, Kept is %v", r.Seq, r.Leases, o.seq, o.view.Kept)
	}
	for _, l := range protocol.Missing(r.Leases, o.view.Kept) {
		if !o.moves.installing(l) {
			o.t.Fatalf("the request claims %v, Kept is %v", l, o.view.Kept)
		}
	}
	o.checkReports(r)
	o.seq, o.sentAt = r.Seq, o.now
}

// reply returns a reply that is probably accepted.
func (o *fuzzedOwner) reply() *protocol.LeaseReply {
	r := &protocol.LeaseReply{
		Namespace: fuzzNamespace, Session: fuzzSession, Leader: o.leader(),
		Term: leasehold.Term(o.tape.near(uint64(o.term))), Seq: protocol.Seq(o.tape.near(uint64(o.lastSeq) + 1)), Echo: protocol.Seq(o.tape.near(uint64(o.seq))),
		Timing: o.timing(), Clock: o.clock(), Offers: o.offers(),
		Departures: o.departures(), Arrivals: o.arrivals(), Draining: o.tape.below(4) == 0, Idle: o.tape.below(4) == 0,
	}
	if r.Term >= o.term && r.Term <= protocol.MaxTerm {
		if r.Term > o.term {
			o.lastSeq = 0
		}
		o.term, o.lastSeq = r.Term, max(o.lastSeq, r.Seq)
	}
	switch b := o.tape.byte(); {
	case b < 200:
	case b < 208:
		r.Namespace = leasehold.Namespace([]string{"", "other", "NOT A NAME"}[b%3])
	case b < 216:
		r.Session = o.session()
	case b < 224:
		r.Incumbent = o.holder()
	case b < 232:
		r.Contender = o.holder()
	case b < 240:
		r.Goodbye = true
	default:
		r.Refusal = leasehold.Kind(b)
	}
	return r
}

func (o *fuzzedOwner) leader() storage.ManagerID {
	return []storage.ManagerID{"m1", "m1", "m2", ""}[o.tape.below(4)]
}

func (o *fuzzedOwner) session() leasehold.Session {
	return []leasehold.Session{fuzzSession, {}, {8}, {9}}[o.tape.below(4)]
}

// holder returns a holder that may be invalid: replies are not checked for that.
func (o *fuzzedOwner) holder() *table.Holder {
	return &table.Holder{Owner: "o", Session: o.session(), Weight: math.NaN()}
}

func (o *fuzzedOwner) timing() protocol.Timing {
	switch b := o.tape.byte(); {
	case b < 160:
		return protocol.DefaultTiming()
	case b < 176:
		return protocol.PaperTiming()
	case b < 192:
		return protocol.Timing{Lease: protocol.MinLease, Renew: protocol.MinLease / 2, Drift: 1}
	case b < 208:
		return protocol.Timing{Lease: protocol.MaxLease, Renew: protocol.MaxLease / 2, Drift: protocol.MaxDrift}
	case b < 224:
		return protocol.Timing{Lease: protocol.MaxLease, Renew: time.Duration(b - 207), Drift: 1}
	}
	return protocol.Timing{Lease: time.Duration(o.tape.raw()), Renew: time.Duration(o.tape.raw()), Drift: mono.Drift(math.Float64frombits(o.tape.raw()))}
}

// clock returns the leader's clock: equal to the owner's, or arbitrary.
func (o *fuzzedOwner) clock() mono.Instant {
	if b := o.tape.byte(); b >= 200 {
		return mono.Instant(o.tape.near(uint64(o.now.Add(time.Duration(b) * time.Second))))
	}
	return o.now
}

// offers returns held leases or parts of them, together with new and invalid
// leases.
func (o *fuzzedOwner) offers() []protocol.Offer {
	var out []protocol.Offer
	for _, l := range o.held() {
		switch b := o.tape.byte(); {
		case b < 160:
			out = append(out, protocol.Offer{Lease: l, Fresh: b%8 == 0})
		case b < 192 && l.Range.Size() > 3: // a part
			l.Range.Start += leasehold.Key(l.Range.Size() / 3)
			out = append(out, protocol.Offer{Lease: l, Fresh: b%4 == 0})
		case b < 208: // more than the lease
			l.Range.Limit = 0
			out = append(out, protocol.Offer{Lease: l, Fresh: b%2 == 0})
		}
	}
	for range o.tape.below(4) {
		l := leasehold.Lease{
			Range:      leasehold.Range{Start: leasehold.Key(o.tape.byte()) << 56},
			Generation: leasehold.Generation(o.tape.near(uint64(o.newest) + 1)),
		}
		l.Range.Limit = l.Range.Start + leasehold.Key(o.tape.byte())<<54
		out = append(out, protocol.Offer{Lease: l, Fresh: o.tape.below(8) != 0})
	}
	out = append(out, o.withState()...)
	if o.tape.below(8) != 0 {
		out = tidy(out)
	}
	return out
}

// tidy sorts offers and omits those that make them invalid.
func tidy(offers []protocol.Offer) []protocol.Offer {
	slices.SortStableFunc(offers, func(a, b protocol.Offer) int {
		switch {
		case a.Range.Start < b.Range.Start:
			return -1
		case a.Range.Start > b.Range.Start:
			return 1
		}
		return 0
	})
	var out []protocol.Offer
	for _, o := range offers {
		if n := len(out); o.Range.Valid() && o.Generation != 0 && (n == 0 || !out[n-1].Range.Overlaps(o.Range)) {
			out = append(out, o)
		}
	}
	return out
}

func FuzzOwner(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x06\x00\x00\x00\x00\x00\x00\x02\x10\x00\x40\x01\x80\x00\x40\x01\x01\x00"))
	random := rand.New(rand.NewPCG(5, 6))
	for range 40 {
		data := make([]byte, 600)
		for i := range data {
			data[i] = byte(random.Uint32())
			if random.IntN(3) > 0 {
				data[i] %= 128 // more common cases
			}
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { newFuzzedOwner(t, data).run() })
}
