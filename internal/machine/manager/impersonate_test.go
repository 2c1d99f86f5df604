package manager_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/protocol"
)

// An owner may use its own name, and has read which session another has. What it says in
// that session is not the other's word: least of all that it leaves, or has nothing.
func TestNobodySpeaksInTheSessionOfAnother(t *testing.T) {
	for name, lie := range map[string]func(r *protocol.LeaseRequest){
		"it leaves":        func(r *protocol.LeaseRequest) { r.Leaving = true },
		"it has nothing":   func(*protocol.LeaseRequest) {},
		"it lives":         func(r *protocol.LeaseRequest) { r.Seq = 1 << 40 },
		"it parts":         func(r *protocol.LeaseRequest) { r.Parting = true },
		"it has no leader": func(r *protocol.LeaseRequest) { r.Term, r.Heard, r.Applied = 0, 0, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			l := newPaperLeader(t)
			a, b := l.join("a"), l.join("b")
			before := len(l.log)
			holder := *b.holder
			holder.Session = a.holder.Session
			r := &protocol.LeaseRequest{
				Namespace: paperNamespace, Holder: &holder, Seq: a.seq + 1, Term: a.term, Heard: a.heard, Applied: a.heard,
			}
			lie(r)
			a.unread, b.unread = nil, nil
			l.step(manager.Request{LeaseRequest: r})
			l.settle()
			l.wantHolder(0, "a", "after somebody else's word")
			if len(l.log) != before || len(a.unread) > 0 || len(b.unread) > 0 || l.noted(manager.NoteForeign) != 1 {
				t.Errorf("the table has %d changes more, a hears %v, b hears %v; noted: %v", len(l.log)-before, a.unread, b.unread, l.notes)
			}
			a.say() // its own word counts as before
			if a.read(); len(a.leases) == 0 {
				t.Error("a has lost its leases")
			}
		})
	}
}

// Neither does somebody while a leader finds out who has what.
func TestNobodyWitnessesForAnother(t *testing.T) {
	s := newSurvey(t)
	a := poolHolder(1)
	lease := leasehold.Lease{Range: leasehold.Range{Limit: 100}, Generation: 1}
	if s.confirm(a, lease) == nil {
		t.Fatal("a witness is not answered")
	}
	b := *poolHolder(2)
	b.Session = a.Session
	if answer := s.request(&protocol.LeaseRequest{Holder: &b, Term: censusTerm, Leaving: true}); answer != nil {
		t.Errorf("who speaks for another is answered: %+v", answer)
	}
	answer := s.confirm(a, lease)
	if answer == nil {
		t.Fatal("a witness is not answered any more")
	}
	if diff := cmp.Diff([]protocol.Offer{{Lease: lease}}, answer.Offers); diff != "" {
		t.Errorf("what it has (-want +got):\n%s", diff)
	}
}
