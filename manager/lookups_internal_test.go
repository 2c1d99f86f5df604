package manager

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/driver"
	"github.com/leasehold-dev/leasehold/internal/machine/node"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/table"
	"github.com/leasehold-dev/leasehold/internal/wire"
)

// A lookup that does not read costs a bounded amount of memory, and what it
// finds at last tells it that something is missing.
func TestSlowLookup(t *testing.T) {
	l := newLookups(8)
	s, err := l.admit("", nil)
	if err != nil {
		t.Fatal(err)
	}
	l.subscribe(0, s, "pool")
	const news = 10*lookupQueue + 7
	for i := range news {
		l.broadcast(&protocol.LookupReply{Namespace: "pool", Term: 1, LSN: leasehold.LSN(i + 1), From: leasehold.LSN(i)})
	}
	waiting := taken(s)
	if len(waiting) == 0 || len(waiting) > lookupQueue {
		t.Fatalf("%d messages wait, want 1 to %d", len(waiting), lookupQueue)
	}
	first, last := waiting[0].update.reply, waiting[len(waiting)-1].update.reply
	if first.From == 0 || last.LSN != news {
		t.Errorf("what is left goes from %d to %d, want a gap before it and the newest at its end", first.From, last.LSN)
	}
}

// Of what a lookup has asked while the machine was busy it is asked the newest, once.
func TestNewestQuestion(t *testing.T) {
	var q questions
	ask := func(seq protocol.Seq, lsn leasehold.LSN) bool {
		return q.ask(mono.Instant(seq), &protocol.LookupRequest{Seq: seq, LSN: lsn})
	}
	if !ask(1, 5) || ask(2, 6) || ask(3, 7) {
		t.Error("want one that the machine is told of, the first")
	}
	if got := q.next().(node.Lookup); got.Seq != 3 || got.LSN != 7 {
		t.Errorf("the machine is asked %d, by who has %d, want 3 and 7", got.Seq, got.LSN)
	}
	if !ask(4, 7) {
		t.Error("nothing waits, and the machine is not told of a question")
	}
	q.answered(9)
	if heard, lsn, behind := q.figures(); heard != 4 || lsn != 7 || behind != 2 {
		t.Errorf("asked at %d, had %d, lacked %d, want 4, 7 and 2", heard, lsn, behind)
	}
}

// However many lookups ask, there is room for owners.
func TestLookupsLeaveRoomForOwners(t *testing.T) {
	const queue = 4
	m := &Manager{ctx: t.Context(), clock: clock.New(), lookups: newLookups(queue)}
	m.driver = driver.New[node.Event, node.Action](m.clock, m.node, queue, m.act) // it does not run: all that comes waits
	var all []*lookupHearing
	ask := func(seq protocol.Seq) {
		for _, h := range all {
			if err := h.hear(wire.FromLookupRequest(&protocol.LookupRequest{Namespace: "pool", Seq: seq})); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range queue {
		s, err := m.lookups.admit("", nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &lookupHearing{m: m, stream: s})
	}
	ask(1)
	if !m.driver.Offer(node.Request{}) {
		t.Fatal("there is no room for an owner")
	}
	ask(2)
	ask(3)
	if n := m.driver.Waiting(); n != queue+1 {
		t.Errorf("%d wait, want %d: the owner, and a question of each lookup", n, queue+1)
	}
}

// taken takes all that waits for a lookup.
func taken(s *lookupStream) (all []outgoing) {
	for {
		out, some := s.mail.take()
		if !some {
			return all
		}
		all = append(all, out)
	}
}

// However many ask for the table, it is encoded once, until it changes.
func TestSnapshotIsEncodedOnce(t *testing.T) {
	l := newLookups(100)
	frozen, changed := table.New(), table.New()
	reply := func(t *table.Table, echo protocol.Seq) *protocol.LookupReply {
		return &protocol.LookupReply{Namespace: "pool", Term: 1, Echo: echo, Snapshot: t}
	}
	var updates []*encoded
	for i := range 10 {
		s, err := l.admit("", nil)
		if err != nil {
			t.Fatal(err)
		}
		l.subscribe(0, s, "pool")
		l.answer(s.id, reply(frozen, protocol.Seq(i+1)))
		out := taken(s)[0]
		if out.answer.Echo != protocol.Seq(i+1) {
			t.Errorf("lookup %d gets the answer to question %d", i, out.answer.Echo)
		}
		updates = append(updates, out.update)
	}
	for _, u := range updates {
		a, err := u.bytes()
		b, _ := updates[0].bytes()
		if u != updates[0] || a != b || err != nil {
			t.Fatal("the same table was encoded twice")
		}
	}
	s, _ := l.admit("", nil)
	l.answer(s.id, reply(changed, 1))
	if out := taken(s)[0]; out.update == updates[0] {
		t.Error("another table was taken for the same")
	}
}

// Whoever lacks the same is answered with the same bytes; whoever lacks something else, or
// asks later, or asks somebody else, is not.
func TestAnswersAreShared(t *testing.T) {
	var a answers
	reply := func(change func(*protocol.LookupReply)) *encoded {
		r := &protocol.LookupReply{
			Namespace: "pool", Leader: "m", Term: 3, Echo: 7, LSN: 12, From: 10, Changes: []table.Change{{LSN: 11}, {LSN: 12}},
		}
		change(r)
		return a.share(r)
	}
	first := reply(func(*protocol.LookupReply) {})
	if again := reply(func(r *protocol.LookupReply) { r.Echo, r.Age = 8, 9 }); again != first {
		t.Error("the same is encoded twice")
	}
	for name, change := range map[string]func(*protocol.LookupReply){
		"less":       func(r *protocol.LookupReply) { r.From, r.Changes = 11, r.Changes[1:] },
		"nothing":    func(r *protocol.LookupReply) { r.From, r.Changes = 0, nil },
		"a part":     func(r *protocol.LookupReply) { r.Changes = r.Changes[:1] },
		"a snapshot": func(r *protocol.LookupReply) { r.Changes, r.Snapshot = nil, table.New() },
		"later":      func(r *protocol.LookupReply) { r.LSN = 13 },
		"a term on":  func(r *protocol.LookupReply) { r.Term = 4 },
		"another":    func(r *protocol.LookupReply) { r.Leader = "n" },
	} {
		if reply(change) == first {
			t.Errorf("%s: the same bytes", name)
		}
	}
	for i := range 10 * maxAnswers {
		reply(func(r *protocol.LookupReply) { r.From = leasehold.LSN(i) })
	}
	if n := len(a.changes); n > maxAnswers {
		t.Errorf("%d answers are remembered", n)
	}
}
