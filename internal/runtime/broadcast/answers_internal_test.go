package broadcast

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A table is encoded once for any number of lookups, until it changes.
func TestSnapshotIsEncodedOnce(t *testing.T) {
	l := NewLookups(t.Context(), Config{MaxStreams: 100})
	frozen, changed := table.New(), table.New()
	answer := func(snapshot *table.Table, echo protocol.Seq) *update {
		s := open(t, l, &fakeStream{ctx: t.Context()})
		s.Subscribe(0, "pool")
		l.Answer(s.id, &protocol.LookupReply{Namespace: "pool", Term: 1, Echo: echo, Snapshot: snapshot})
		out := s.queue.drain()[0]
		if out.answer.Echo != echo {
			t.Errorf("the answer to question %d is for %d", echo, out.answer.Echo)
		}
		return out.update
	}
	first := answer(frozen, 1)
	frame, err := first.encode()
	if err != nil {
		t.Fatal(err)
	}
	for echo := range protocol.Seq(10) {
		u := answer(frozen, echo+2)
		if again, _ := u.encode(); u != first || again != frame {
			t.Fatal("the same table is encoded twice")
		}
	}
	if answer(changed, 1) == first {
		t.Error("another table is taken for the same")
	}
}

// Lookups that lack the same changes share one answer. One that lacks others, asks later, or asks
// under another leader does not.
func TestAnswersAreShared(t *testing.T) {
	var a answers
	reply := func(change func(*protocol.LookupReply)) *update {
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
		t.Errorf("%d answers are kept", n)
	}
}
