package manager_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// Lookups receive the sessions of all owners. A request in the session of another owner is dropped, whatever its
// content.
func TestStolenSession(t *testing.T) {
	for name, change := range map[string]func(*protocol.LeaseRequest){
		"no leases":       func(r *protocol.LeaseRequest) { r.Leases = nil },
		"leaving":         func(r *protocol.LeaseRequest) { r.Leaving, r.Leases = true, nil },
		"another address": func(r *protocol.LeaseRequest) { r.Mover, r.Identity = "eve:81", "spiffe://d/eve" },
		"asks to retire":  func(r *protocol.LeaseRequest) { r.Parting = true },
	} {
		t.Run(name, func(t *testing.T) {
			l := newPaperLeader(t)
			a := l.join("a")
			logged, stolen := len(l.log), *a.holder
			stolen.Owner = "eve"
			r := a.request()
			r.Holder = &stolen
			change(r)
			l.step(manager.Request{LeaseRequest: r})
			if len(a.unread) != 0 || len(l.log) != logged {
				t.Errorf("it got %v, and %d changes were recorded", a.unread, len(l.log)-logged)
			}
			a.seq-- // a did not send that request
			l.step(manager.Request{LeaseRequest: a.request()})
			if offers := a.read().Offers; len(offers) != 1 {
				t.Errorf("a is offered %v afterwards", offers)
			}
		})
	}
}

func TestCensusOfAStolenSession(t *testing.T) {
	s, a := newSurvey(t), poolHolder(1)
	s.confirm(a, held(0, 4, 11))
	stolen := *a
	stolen.Owner = "eve"
	if r := s.request(&protocol.LeaseRequest{Holder: &stolen, Term: censusTerm, Leaving: true}); r != nil {
		t.Errorf("it got %+v", r)
	}
	if f := findings(s.lead()); f[0].By != a.Owner {
		t.Errorf("afterwards the table has %+v", f)
	}
}
