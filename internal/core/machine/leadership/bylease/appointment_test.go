package bylease_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/bylease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

const second = mono.Instant(time.Second)

// A candidate is a machine in a test that simulates the lease.
type candidate struct {
	t *testing.T
	m *bylease.Machine
}

func newCandidate(t *testing.T) *candidate {
	t.Helper()
	m, err := bylease.New(bylease.Config{Self: "me"})
	if err != nil {
		t.Fatal(err)
	}
	return &candidate{t, m}
}

// step steps the machine with an event of the lease, an event of package byrecord, or nil for
// Advance, and compares the actions except notes.
func (c *candidate) step(now mono.Instant, e any, want ...byrecord.Action) mono.Instant {
	c.t.Helper()
	var actions []byrecord.Action
	var wake mono.Instant
	switch e := e.(type) {
	case bylease.Event:
		actions, wake = c.m.StepLease(now, e)
	case byrecord.Event:
		actions, wake = c.m.Step(now, e)
	default:
		actions, wake = c.m.Advance(now)
	}
	var got []byrecord.Action
	for _, a := range actions {
		if _, note := a.(byrecord.Note); !note {
			got = append(got, a)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		c.t.Fatalf("at %v, %T (-want +got):\n%s", now, e, diff)
	}
	return wake
}

func (c *candidate) leads(now mono.Instant, want bool) {
	c.t.Helper()
	if c.m.Leads(now) != want {
		c.t.Errorf("at %v: Leads = %v", now, !want)
	}
}

func TestLeadsByItsLease(t *testing.T) {
	c := newCandidate(t)
	c.leads(0, false)
	wake := c.step(0, bylease.Appointed{Term: 7, Until: 3 * second}, byrecord.Lead{Term: 7, Until: 3 * second})
	if wake != 3*second {
		t.Errorf("wake time %v", wake)
	}
	c.leads(3*second-1, true)
	c.leads(3*second, false)
	c.step(second, bylease.Extended{Term: 7, Until: 4 * second}, byrecord.Extend{Until: 4 * second})
	c.step(second, bylease.Extended{Term: 7, Until: 3 * second}) // stale
	c.leads(4*second-1, true)
	c.step(4*second, nil)
	c.leads(4*second, false)
	c.step(5*second, bylease.Extended{Term: 7, Until: 6 * second}, byrecord.Extend{Until: 6 * second}) // no other manager has taken over
	c.step(5*second, bylease.Dismissed{}, byrecord.StepDown{})
	c.leads(5*second, false)
	c.step(6*second, bylease.Dismissed{})
	c.step(7*second, bylease.Appointed{Term: 9, Until: 9 * second}, byrecord.Lead{Term: 9, Until: 9 * second})
}

// A term is led at most once: the state of the term may be lost.
func TestLeadsATermOnce(t *testing.T) {
	for name, event := range map[string]byrecord.Event{
		"after sleep": byrecord.Slept{}, "after a term without numbers": byrecord.Deposed{By: 8},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCandidate(t)
			c.step(0, bylease.Appointed{Term: 7, Until: 3 * second}, byrecord.Lead{Term: 7, Until: 3 * second})
			c.step(0, byrecord.Deposed{By: 7}) // this manager's own term
			c.step(second, event, byrecord.StepDown{})
			c.step(second, bylease.Extended{Term: 7, Until: 4 * second})
			c.step(second, bylease.Appointed{Term: 7, Until: 4 * second})
			c.leads(second, false)
			c.step(2*second, bylease.Appointed{Term: 8, Until: 5 * second}, byrecord.Lead{Term: 8, Until: 5 * second})
		})
	}
}

// A lease with a new fence begins a new term, even without Dismissed.
func TestNewFenceIsANewTerm(t *testing.T) {
	c := newCandidate(t)
	c.step(0, bylease.Appointed{Term: 7, Until: 3 * second}, byrecord.Lead{Term: 7, Until: 3 * second})
	c.step(second, bylease.Appointed{Term: 8, Until: 4 * second}, byrecord.StepDown{}, byrecord.Lead{Term: 8, Until: 4 * second})
}

func TestResigns(t *testing.T) {
	t.Run("a leader, when the lease has ended", func(t *testing.T) {
		c := newCandidate(t)
		c.step(0, bylease.Appointed{Term: 7, Until: 3 * second}, byrecord.Lead{Term: 7, Until: 3 * second})
		c.step(second, byrecord.Resign{}, byrecord.StepDown{})
		c.step(second, byrecord.Resign{})
		c.step(second, bylease.Dismissed{}, byrecord.Resigned{})
		c.step(second, bylease.Dismissed{})
	})
	t.Run("a standby, at once and for good", func(t *testing.T) {
		c := newCandidate(t)
		c.step(0, byrecord.Resign{}, byrecord.Resigned{})
		c.step(0, bylease.Appointed{Term: 7, Until: 3 * second})
		c.leads(0, false)
	})
}

func TestLeaderHints(t *testing.T) {
	c := newCandidate(t)
	expectLeader := func(now mono.Instant, id string, term leasehold.Term, stale bool) {
		t.Helper()
		if got, in := c.m.Leader(); string(got) != id || in != term || c.m.Stale(now) != stale {
			t.Errorf("at %v: leader %q in term %d, stale %v; want %q, %d, %v", now, got, in, c.m.Stale(now), id, term, stale)
		}
	}
	expectLeader(0, "", 0, true)
	c.step(0, bylease.Leads{Manager: "other", Term: 5})
	expectLeader(second, "other", 5, false)
	expectLeader(3*second, "other", 5, true) // no hint since
	c.step(second, bylease.Leads{Manager: "old", Term: 4})
	expectLeader(second, "other", 5, false)
	c.step(second, bylease.Appointed{Term: 7, Until: 3 * second}, byrecord.Lead{Term: 7, Until: 3 * second})
	expectLeader(second, "me", 7, false)
	c.step(second, bylease.Leads{Manager: "other", Term: 9}) // ignored by a leader
	expectLeader(second, "me", 7, false)
	c.step(second, bylease.Dismissed{}, byrecord.StepDown{})
	expectLeader(second, "", 7, true)
	c.step(second, bylease.Leads{Manager: "me", Term: 7}) // stale
	expectLeader(second, "", 7, true)
}

func TestConfigRefuses(t *testing.T) {
	for _, cfg := range []bylease.Config{{}, {Self: "me", Drift: 0.5}, {Self: "me", Drift: 11}, {Self: "me", Fade: -1}, {Self: "me", Remember: -1}} {
		if _, err := bylease.New(cfg); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// all is step with all actions, notes included, and the wake time.
func (c *candidate) all(now mono.Instant, e any, wake mono.Instant, want ...byrecord.Action) {
	c.t.Helper()
	var got []byrecord.Action
	var next mono.Instant
	switch e := e.(type) {
	case bylease.Event:
		got, next = c.m.StepLease(now, e)
	case byrecord.Event:
		got, next = c.m.Step(now, e)
	default:
		got, next = c.m.Advance(now)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || next != wake {
		c.t.Errorf("at %v, %T: wake %v, want %v (-want +got):\n%s", now, e, next, wake, diff)
	}
}

// TestTermsInFull: every action and wake time of some terms.
func TestTermsInFull(t *testing.T) {
	c := newCandidate(t)
	c.all(0, bylease.Leads{Manager: "other", Term: 5}, 3*second)
	c.all(second, bylease.Leads{Manager: "other", Term: 5}, 4*second)
	c.all(4*second, nil, mono.Never) // the hint has faded
	c.all(4*second, byrecord.Outranked{By: 99, Manager: true}, mono.Never)
	c.all(4*second, bylease.Appointed{Term: 7, Until: 6 * second}, 6*second,
		byrecord.Note{What: byrecord.NoteElected, Term: 7}, byrecord.Lead{Term: 7, Until: 6 * second})
	if c.m.Stale(6*second-1) || !c.m.Stale(6*second) {
		t.Error("a leader is known as long as its lease is valid")
	}
	c.all(6*second, nil, mono.Never, byrecord.Note{What: byrecord.NoteLapsed})
	c.all(7*second, nil, mono.Never)
	c.all(7*second, bylease.Extended{Term: 7, Until: 7 * second}, mono.Never, byrecord.Extend{Until: 7 * second}) // too late
	c.all(7*second, bylease.Extended{Term: 7, Until: 9 * second}, 9*second,
		byrecord.Note{What: byrecord.NoteRegained}, byrecord.Extend{Until: 9 * second})
	c.all(8*second, bylease.Extended{Term: 7, Until: 10 * second}, 10*second, byrecord.Extend{Until: 10 * second})
	c.all(8*second, bylease.Extended{Term: 7, Until: 10 * second}, 10*second)
	c.all(8*second, bylease.Extended{Term: 8, Until: 12 * second}, 10*second)
	c.all(8*second, byrecord.Slept{}, mono.Never, byrecord.Note{What: byrecord.NoteSlept, Term: 7}, byrecord.StepDown{})
	c.all(8*second, bylease.Leads{Manager: "me", Term: 7}, mono.Never) // an old hint
	c.all(9*second, bylease.Leads{Manager: "other", Term: 8}, 12*second)
	c.all(9*second, bylease.Appointed{Term: 9, Until: 9 * second}, mono.Never,
		byrecord.Note{What: byrecord.NoteElected, Term: 9}, byrecord.Lead{Term: 9, Until: 9 * second}) // too late
	c.all(9*second, byrecord.Deposed{By: 10}, mono.Never,
		byrecord.Note{What: byrecord.NoteDeposed, Term: 10, OwnTerm: 9}, byrecord.StepDown{})
	c.all(9*second, bylease.Appointed{Term: 11, Until: 20 * second}, 20*second,
		byrecord.Note{What: byrecord.NoteElected, Term: 11}, byrecord.Lead{Term: 11, Until: 20 * second})
	c.all(10*second, byrecord.Outranked{By: 12, Manager: true}, mono.Never,
		byrecord.Note{What: byrecord.NoteOutranked, Term: 12, OwnTerm: 11}, byrecord.StepDown{Above: 12})
	c.all(10*second, bylease.Appointed{Term: 13, Until: 400 * second}, 400*second,
		byrecord.Note{What: byrecord.NoteElected, Term: 13}, byrecord.Lead{Term: 13, Until: 400 * second})
	c.all(301*second, byrecord.Outranked{By: 14}, 400*second, byrecord.Note{What: byrecord.NoteDisbelieved, Term: 14, OwnTerm: 13})
	c.all(302*second, byrecord.Outranked{By: 14}, 400*second)
	c.all(303*second, bylease.Dismissed{}, mono.Never, byrecord.Note{What: byrecord.NoteDismissed, Term: 13}, byrecord.StepDown{})
	c.all(304*second, bylease.Appointed{Term: 15, Until: 310 * second}, 310*second,
		byrecord.Note{What: byrecord.NoteElected, Term: 15}, byrecord.Lead{Term: 15, Until: 310 * second})
	c.all(305*second, byrecord.Resign{}, mono.Never, byrecord.Note{What: byrecord.NoteResigning, Term: 15}, byrecord.StepDown{})
	c.all(306*second, bylease.Dismissed{}, mono.Never, byrecord.Resigned{})

	standby := newCandidate(t)
	standby.all(0, byrecord.Resign{}, mono.Never, byrecord.Resigned{})
}

func TestConfigAccepts(t *testing.T) {
	for _, cfg := range []bylease.Config{{Self: "me", Drift: 1}, {Self: "me", Drift: 10}, {Self: "me", Fade: 1, Remember: 1}} {
		if _, err := bylease.New(cfg); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
