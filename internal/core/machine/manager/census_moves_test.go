package manager_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// These tests have a move that was in progress when the last leader failed: the source has released the keys from 0
// to 4, which it had under generation 11, and the target has their state.
var moveTicket = protocol.Ticket{1}

func letGo(s *survey, from, to *table.Holder, backing leasehold.Term) {
	s.request(&protocol.LeaseRequest{Holder: from, Term: censusTerm, Mover: "m", Moves: []protocol.MoveReport{
		{Ticket: moveTicket, Range: cell(0, 4), To: to, State: protocol.MoveDone, Newest: 11, Backing: backing},
	}})
}

func waits(s *survey, to *table.Holder, backing leasehold.Term) {
	s.request(&protocol.LeaseRequest{Holder: to, Term: censusTerm, Mover: "m", Imports: []protocol.Import{
		{Ticket: moveTicket, Range: cell(0, 4), Backing: backing},
	}})
}

func TestCensusGoesOnWithAMove(t *testing.T) {
	from, to, third := poolHolder(1), poolHolder(2), poolHolder(3)
	for _, c := range []struct {
		name   string
		claims func(*survey)
		want   bool
	}{
		{"both have a backing", func(s *survey) { letGo(s, from, to, 7); waits(s, to, 7) }, true},
		{"backing of the target by a later leader", func(s *survey) { letGo(s, from, to, 6); waits(s, to, 7) }, true},
		{"backing of the source by a later leader", func(s *survey) { letGo(s, from, to, 7); waits(s, to, 6) }, false},
		{"source without backing", func(s *survey) { letGo(s, from, to, 0); waits(s, to, 7) }, false},
		{"target without backing", func(s *survey) { letGo(s, from, to, 7); waits(s, to, 0) }, false},
		{"target gone", func(s *survey) { letGo(s, from, to, 7) }, false},
		{"source gone", func(s *survey) { waits(s, to, 7) }, false},
		{"both had a backing in this term", func(s *survey) {
			letGo(s, from, to, 7)
			waits(s, to, 7)
			letGo(s, from, to, 0)
			waits(s, to, 0)
		}, true},
		{"target has dropped the state", func(s *survey) {
			letGo(s, from, to, 7)
			waits(s, to, 7)
			s.confirm(to)
		}, false},
		{"another owner has the range under a newer lease", func(s *survey) {
			letGo(s, from, to, 7)
			waits(s, to, 7)
			s.confirm(third, held(0, 4, 12))
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSurvey(t)
			c.claims(s)
			m := s.lead()
			actions, _ := m.Advance(s.now)
			var moved []table.Change
			for _, a := range actions {
				commit, ok := a.(manager.Commit)
				for i := 0; ok && i < len(commit.Batch.Changes); i++ {
					if change := commit.Batch.Changes[i]; change.Kind == table.Moved {
						moved = append(moved, change)
					}
				}
			}
			var want []table.Change
			if c.want {
				lsn, newest := storage.First(censusTerm)
				want = []table.Change{{LSN: lsn + 1, Kind: table.Moved, Range: cell(0, 4), Generation: newest + 1, Holder: to, From: from}}
			}
			if diff := cmp.Diff(want, moved); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// With the move, exact claims cover all keys, and the census ends early.
func TestCensusWithAMoveEndsEarly(t *testing.T) {
	from, to := poolHolder(1), poolHolder(2)
	s := newSurvey(t)
	s.confirm(poolHolder(3), held(4, 0, 9))
	letGo(s, from, to, 7)
	if s.census.Over() {
		t.Error("it ended before the claim of the target")
	}
	if waits(s, to, 7); !s.census.Over() {
		t.Error("it continues")
	}
}

// An owner that leaves gets the goodbye at once, unless it has handed state over: then it must stay until that is
// recorded.
func TestCensusOfLeavingOwners(t *testing.T) {
	from, to := poolHolder(1), poolHolder(2)
	s := newSurvey(t)
	if r := s.request(&protocol.LeaseRequest{Holder: to, Leaving: true}); r == nil || !r.Goodbye {
		t.Errorf("it got %+v, want a goodbye", r)
	}
	if r := s.request(&protocol.LeaseRequest{Holder: from, Leaving: true, Moves: []protocol.MoveReport{
		{Ticket: moveTicket, Range: cell(0, 4), To: to, State: protocol.MoveDone, Newest: 11, Backing: 7},
	}}); r != nil {
		t.Errorf("after a handover it got %+v", r)
	}
}

// With a volatile table, the leader keeps the source of a move until the target has confirmed the lease: until then
// the next leader needs both.
func TestVolatileLeaderKeepsTheSource(t *testing.T) {
	from, to := poolHolder(1), poolHolder(2)
	s := newSurvey(t)
	s.confirm(poolHolder(3), held(4, 0, 9))
	letGo(s, from, to, 7)
	waits(s, to, 7)
	m := s.lead()
	m.Advance(s.now)
	m.Step(s.now, manager.Committed{Outcome: storage.Done})
	lsn, newest := storage.First(censusTerm)
	if m.Table().LSN() != lsn+1 {
		t.Fatalf("the move is not recorded: the table is at %d", m.Table().LSN())
	}
	seq := map[leasehold.Session]protocol.Seq{from.Session: 50, to.Session: 50}
	acked := map[leasehold.Session]protocol.Seq{}
	request := func(r *protocol.LeaseRequest) (reply *protocol.LeaseReply) {
		t.Helper()
		seq[r.Holder.Session]++
		r.Namespace, r.Seq, r.Term, r.Mover = poolNamespace, seq[r.Holder.Session], censusTerm, "m"
		r.Heard = acked[r.Holder.Session]
		r.Applied = r.Heard
		actions, _ := m.Step(s.now, manager.Request{LeaseRequest: r})
		for _, a := range actions {
			if send, ok := a.(manager.Send); ok {
				acked[send.Reply.Session] = send.Reply.Seq
				if send.Reply.Session == r.Holder.Session {
					reply = send.Reply
				}
			}
		}
		if reply == nil {
			t.Fatalf("no reply to %+v: %v", r, actions)
		}
		return reply
	}
	done := []protocol.MoveReport{{Ticket: moveTicket, Range: cell(0, 4), To: to, State: protocol.MoveDone, Newest: 11}}
	imports := []protocol.Import{{Ticket: moveTicket, Range: cell(0, 4)}}
	request(&protocol.LeaseRequest{Holder: from, Moves: done})
	if r := request(&protocol.LeaseRequest{Holder: from, Moves: done, Parting: true}); len(r.Departures) != 1 || r.Idle {
		t.Fatalf("the source got %+v, idle %v, before the target has the lease", r.Departures, r.Idle)
	}
	lease := leasehold.Lease{Range: cell(0, 4), Generation: newest + 1}
	r := request(&protocol.LeaseRequest{Holder: to, Imports: imports})
	if want := []protocol.Offer{{Lease: lease, Fresh: true, Ticket: moveTicket}}; !cmp.Equal(want, r.Offers) {
		t.Fatalf("the target is offered %+v, want %+v", r.Offers, want)
	}
	request(&protocol.LeaseRequest{Holder: to, Leases: []leasehold.Lease{lease}})
	if r := request(&protocol.LeaseRequest{Holder: from, Moves: done, Parting: true}); len(r.Departures) != 0 {
		t.Errorf("the source got %+v, although the target has the lease", r.Departures)
	}
}

// A term has a limited number of LSNs. A leader that has used them up reports that, and makes no more changes.
func TestTermIsSpent(t *testing.T) {
	cfg := poolConfig()
	cfg.Volatile = true
	lsn, _ := storage.First(censusTerm + 1)
	full, err := table.Restore(lsn-10, 1, keyrange.NewMap(table.Entry{}))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.New(0, cfg, censusTerm, censusEnd, &storage.State{Term: censusTerm, Table: full})
	if err != nil {
		t.Fatal(err)
	}
	actions, _ := m.Advance(0)
	if diff := cmp.Diff([]manager.Action{manager.Spent{}}, actions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
