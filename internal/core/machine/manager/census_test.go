package manager_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// The census of these tests is of a leader in censusTerm, which took over at one hour and never loses authority.
// Leases last 10 s; every lease has expired after 12 s.
const (
	censusTerm  leasehold.Term = 1000
	censusBegin                = mono.Instant(time.Hour)
	censusEnd                  = censusBegin + mono.Instant(12*time.Second)
)

// A survey is a census whose owners are simulated by the test.
type survey struct {
	t      *testing.T
	census *manager.Census
	now    mono.Instant
	seqs   map[leasehold.Session]protocol.Seq
}

func newSurvey(t *testing.T, change ...func(*manager.Config)) *survey {
	t.Helper()
	cfg := poolConfig()
	cfg.Volatile = true
	for _, c := range change {
		c(&cfg)
	}
	census, err := manager.NewCensus(censusBegin, cfg, censusTerm, mono.Never)
	if err != nil {
		t.Fatal(err)
	}
	return &survey{t, census, censusBegin, make(map[leasehold.Session]protocol.Seq)}
}

// claim sends an owner's claims and returns the reply; nil if there is none. term is that of the last leader whose
// message the owner has received.
func (s *survey) claim(h *table.Holder, term leasehold.Term, leases ...leasehold.Lease) *protocol.LeaseReply {
	s.t.Helper()
	return s.request(&protocol.LeaseRequest{Holder: h, Term: term, Leases: leases})
}

// confirm sends the claims of an owner that has received a message of this leader.
func (s *survey) confirm(h *table.Holder, leases ...leasehold.Lease) *protocol.LeaseReply {
	s.t.Helper()
	return s.claim(h, censusTerm, leases...)
}

func (s *survey) request(r *protocol.LeaseRequest) *protocol.LeaseReply {
	s.t.Helper()
	if r.Seq == 0 {
		s.seqs[r.Holder.Session]++
		r.Seq = s.seqs[r.Holder.Session]
	}
	r.Namespace = poolNamespace
	actions, _ := s.census.Step(s.now, manager.Request{LeaseRequest: r})
	var reply *protocol.LeaseReply
	for _, a := range actions {
		if send, ok := a.(manager.Send); ok {
			reply = send.Reply
		}
	}
	if reply != nil {
		if err := reply.Validate(protocol.DefaultLimits); err != nil {
			s.t.Fatal(err)
		}
	}
	return reply
}

// lead ends the census and returns the machine that follows.
func (s *survey) lead() *manager.Machine {
	s.t.Helper()
	if !s.census.Over() {
		s.now = censusEnd
		s.census.Advance(s.now)
	}
	if !s.census.Over() {
		s.t.Fatal("the census is not over")
	}
	m, err := s.census.Lead(s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// A finding is an entry of the resulting table.
type finding struct {
	Range leasehold.Range
	By    leasehold.OwnerID
	Gen   leasehold.Generation
	Kept  bool // lookups with this generation have no loss
}

func findings(m *manager.Machine) (out []finding) {
	for r, e := range m.Table().All() {
		f := finding{Range: r, Gen: e.Generation, Kept: e.Adopted != 0}
		if !e.Vacant() {
			f.By = e.Holder.Owner
		}
		out = append(out, f)
	}
	return out
}

func held(i, j int, g leasehold.Generation) leasehold.Lease {
	return leasehold.Lease{Range: cell(i, j), Generation: g}
}

func TestCensusRenewsClaims(t *testing.T) {
	s, a := newSurvey(t), poolHolder(1)
	got := s.claim(a, 7, held(0, 4, 11), held(9, 10, 12))
	want := &protocol.LeaseReply{
		Namespace: poolNamespace, Session: a.Session, Leader: "m1", Term: censusTerm, Seq: 1, Echo: 1, Collecting: true,
		Timing: protocol.DefaultTiming(), Clock: censusBegin,
		Offers: []protocol.Offer{{Lease: held(0, 4, 11)}, {Lease: held(9, 10, 12)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if s.request(&protocol.LeaseRequest{Holder: a, Seq: 1, Term: 7}) != nil {
		t.Error("a duplicate request got a reply")
	}
	if r := s.claim(poolHolder(2), 0); r == nil || len(r.Offers) != 0 {
		t.Errorf("an owner without leases got %+v", r)
	}
}

func TestCensusFinds(t *testing.T) {
	a, b := poolHolder(1), poolHolder(2)
	_, newest := storage.First(censusTerm)
	for _, c := range []struct {
		name   string
		claims func(*survey)
		want   []finding
	}{
		{"nothing", func(*survey) {}, []finding{{Range: leasehold.All}}},
		{"an exact claim", func(s *survey) {
			s.claim(a, 7, held(0, 4, 11))
			s.confirm(a, held(0, 4, 11))
		}, []finding{{cell(0, 4), a.Owner, 11, true}, {Range: cell(4, 0)}}},
		{"an inexact claim", func(s *survey) {
			s.claim(a, 7, held(0, 4, 11))
		}, []finding{{cell(0, 4), a.Owner, 11, false}, {Range: cell(4, 0)}}},
		{"the newest of two exact claims", func(s *survey) {
			s.confirm(a, held(0, 4, 11))
			s.confirm(a, held(0, 2, 11))
		}, []finding{{cell(0, 2), a.Owner, 11, true}, {Range: cell(2, 0)}}},
		{"an exact claim before an inexact one", func(s *survey) {
			s.claim(b, 7, held(0, 4, 12)) // a stale message, with a newer lease than the one that is held
			s.confirm(a, held(2, 8, 11))
		}, []finding{{cell(0, 2), b.Owner, 12, false}, {cell(2, 8), a.Owner, 11, true}, {Range: cell(8, 0)}}},
		{"the newer of two inexact claims", func(s *survey) {
			s.claim(a, 7, held(0, 4, 11))
			s.claim(b, 7, held(2, 8, 10))
		}, []finding{{cell(0, 4), a.Owner, 11, false}, {cell(4, 8), b.Owner, 10, false}, {Range: cell(8, 0)}}},
		{"no claim of an owner that leaves", func(s *survey) {
			s.claim(a, 7, held(0, 4, 11))
			s.request(&protocol.LeaseRequest{Holder: a, Term: 7, Leaving: true})
		}, []finding{{Range: leasehold.All}}},
		{"no claim of an impossible generation", func(s *survey) {
			s.claim(a, 7, held(0, 4, newest+1))
		}, []finding{{Range: leasehold.All}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSurvey(t)
			c.claims(s)
			m := s.lead()
			if diff := cmp.Diff(c.want, findings(m)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if lsn, newest := storage.First(censusTerm); m.Table().LSN() != lsn || m.Table().Newest() != newest {
				t.Errorf("the table starts at LSN %d and generation %d, want %d and %d", m.Table().LSN(), m.Table().Newest(), lsn, newest)
			}
		})
	}
}

// Nothing is granted before every lease of earlier leaders has expired, unless exact claims cover all keys.
func TestCensusEnds(t *testing.T) {
	a, b := poolHolder(1), poolHolder(2)
	t.Run("when all leases have expired", func(t *testing.T) {
		s := newSurvey(t)
		s.confirm(a, held(0, 4, 11))
		if _, wake := s.census.Advance(censusEnd - 1); s.census.Over() || wake != censusEnd {
			t.Errorf("over: %v, woken at %v", s.census.Over(), wake)
		}
		s.lead()
	})
	t.Run("when leases of a longer promised time have expired", func(t *testing.T) {
		s := newSurvey(t, func(c *manager.Config) { c.Promised = time.Minute })
		if _, wake := s.census.Advance(censusEnd); s.census.Over() || wake != censusBegin.Add(time.Minute) {
			t.Errorf("over: %v, woken at %v", s.census.Over(), wake)
		}
	})
	t.Run("when exact claims cover all keys", func(t *testing.T) {
		s := newSurvey(t)
		s.confirm(a, held(0, 4, 11))
		s.claim(b, 7, held(4, 0, 12))
		if s.census.Over() {
			t.Error("it ended with an inexact claim")
		}
		s.confirm(b, held(4, 0, 12))
		if !s.census.Over() {
			t.Error("it continues although exact claims cover all keys")
		}
	})
	t.Run("only with authority", func(t *testing.T) {
		cfg := poolConfig()
		census, err := manager.NewCensus(censusBegin, cfg, censusTerm, censusEnd-1)
		if err != nil {
			t.Fatal(err)
		}
		if census.Advance(censusEnd); census.Over() {
			t.Error("it ended without authority")
		}
		s := &survey{t, census, censusEnd - 1, make(map[leasehold.Session]protocol.Seq)}
		if s.claim(a, 7) != nil {
			t.Error("it replied without authority")
		}
		if census.Step(censusEnd, manager.Authority{Until: censusEnd + 1}); !census.Over() {
			t.Error("it did not end when it had authority")
		}
	})
}

// Late requests, and those beyond the limit, get no reply: a refusal would end the owner's leases, and the machine
// that follows can serve it.
func TestCensusIgnores(t *testing.T) {
	s := newSurvey(t, func(c *manager.Config) { c.MaxOwners = 1 })
	s.claim(poolHolder(1), 0)
	s.claim(poolHolder(2), 0)
	if r := s.claim(poolHolder(3), 0); r != nil || s.census.Witnesses() != 2 {
		t.Errorf("an owner beyond the limit got %+v; there are %d witnesses", r, s.census.Witnesses())
	}
	foreign := &protocol.LeaseRequest{Namespace: "elsewhere", Holder: poolHolder(1), Seq: 9}
	if actions, _ := s.census.Step(s.now, manager.Request{LeaseRequest: foreign}); !noted(actions, manager.NoteForeign) {
		t.Errorf("a request for another namespace: %v", actions)
	}
	later := &protocol.LeaseRequest{Namespace: poolNamespace, Holder: poolHolder(1), Seq: 9, Term: censusTerm + 1}
	if actions, _ := s.census.Step(s.now, manager.Request{LeaseRequest: later}); !cmp.Equal(actions, []manager.Action{manager.Outranked{By: censusTerm + 1}}) {
		t.Errorf("a request with a higher term: %v", actions)
	}
	s.now = censusEnd
	if r := s.claim(poolHolder(1), 0); r != nil {
		t.Errorf("a late request got %+v", r)
	}
}

func noted(actions []manager.Action, what manager.Notable) bool {
	for _, a := range actions {
		if n, ok := a.(manager.Note); ok && n.What == what {
			return true
		}
	}
	return false
}

// The leases of a silent owner are free when the last renewal of this leader has expired, and the time that an
// earlier leader may have promised.
func TestCensusTracksRenewals(t *testing.T) {
	early, late, busy := poolHolder(1), poolHolder(2), poolHolder(3)
	s := newSurvey(t)
	s.claim(early, 7, held(0, 4, 11))
	s.now = censusBegin.Add(11 * time.Second)
	s.claim(late, 7, held(4, 8, 12))
	m := s.lead()
	// A third owner stays active, and could take the ranges of the others.
	request := &protocol.LeaseRequest{Namespace: poolNamespace, Holder: busy}
	var by []leasehold.OwnerID
	var did func(actions []manager.Action, _ mono.Instant)
	did = func(actions []manager.Action, _ mono.Instant) {
		for _, a := range slices.Clone(actions) {
			switch a := a.(type) {
			case manager.Send:
				if a.Owner == busy.Owner {
					request.Term, request.Heard, request.Applied = a.Reply.Term, a.Reply.Seq, a.Reply.Seq
				}
			case manager.Commit:
				for _, c := range a.Batch.Changes {
					if c.Kind == table.Vacated && c.Holder != busy {
						by = append(by, c.Holder.Owner)
					}
				}
				did(m.Step(s.now, manager.Committed{Outcome: storage.Done}))
			}
		}
	}
	vacated := func(now mono.Instant) []leasehold.OwnerID {
		s.now, by = now, nil
		request.Seq++
		next := *request
		did(m.Step(now, manager.Request{LeaseRequest: &next}))
		did(m.Advance(now))
		return slices.Compact(by)
	}
	vacated(censusEnd - 2)
	vacated(censusEnd - 1)
	if got := vacated(censusEnd); !cmp.Equal(got, []leasehold.OwnerID{early.Owner}) {
		t.Errorf("after 12 s %v have expired, want the lease of %s", got, early.Owner)
	}
	free := censusBegin.Add(23 * time.Second)
	for at := s.now.Add(2 * time.Second); at < free-1; at = at.Add(2 * time.Second) {
		vacated(at)
	}
	if got := vacated(free - 1); got != nil {
		t.Errorf("just before 23 s %v have expired", got)
	}
	if got := vacated(free); !cmp.Equal(got, []leasehold.OwnerID{late.Owner}) {
		t.Errorf("after 23 s %v have expired, want the lease of %s", got, late.Owner)
	}
}
