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

// A candidate is a machine that the test plays the lease for.
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

// hear lets something happen to the lease, or to an election that there is not,
// and compares what the machine does with what the test wants, but for notes.
func (c *candidate) hear(now mono.Instant, e any, want ...byrecord.Action) mono.Instant {
	c.t.Helper()
	var actions []byrecord.Action
	var wake mono.Instant
	switch e := e.(type) {
	case bylease.Event:
		actions, wake = c.m.Hear(now, e)
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
		c.t.Errorf("at %v it leads: %v", now, !want)
	}
}

func TestLeadsByItsLease(t *testing.T) {
	c := newCandidate(t)
	c.leads(0, false)
	wake := c.hear(0, bylease.Appointed{Term: 7, Until: 3 * second}, byrecord.Lead{Term: 7, Until: 3 * second})
	if wake != 3*second {
		t.Errorf("it wants to be woken at %v", wake)
	}
	c.leads(3*second-1, true)
	c.leads(3*second, false)
	c.hear(second, bylease.Extended{Term: 7, Until: 4 * second}, byrecord.Extend{Until: 4 * second})
	c.hear(second, bylease.Extended{Term: 7, Until: 3 * second}) // an older word
	c.leads(4*second-1, true)
	c.hear(4*second, nil)
	c.leads(4*second, false)
	c.hear(5*second, bylease.Extended{Term: 7, Until: 6 * second}, byrecord.Extend{Until: 6 * second}) // nobody has taken it
	c.hear(5*second, bylease.Dismissed{}, byrecord.StepDown{})
	c.leads(5*second, false)
	c.hear(6*second, bylease.Dismissed{})
	c.hear(7*second, bylease.Appointed{Term: 9, Until: 9 * second}, byrecord.Lead{Term: 9, Until: 9 * second})
}

// A term is led once: what was said in it may be forgotten.
func TestLeadsATermOnce(t *testing.T) {
	for name, event := range map[string]byrecord.Event{
		"after sleep": byrecord.Slept{}, "after a term that is spent": byrecord.Deposed{By: 8},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCandidate(t)
			c.hear(0, bylease.Appointed{Term: 7, Until: 3 * second}, byrecord.Lead{Term: 7, Until: 3 * second})
			c.hear(0, byrecord.Deposed{By: 7}) // that is us
			c.hear(second, event, byrecord.StepDown{})
			c.hear(second, bylease.Extended{Term: 7, Until: 4 * second})
			c.hear(second, bylease.Appointed{Term: 7, Until: 4 * second})
			c.leads(second, false)
			c.hear(2*second, bylease.Appointed{Term: 8, Until: 5 * second}, byrecord.Lead{Term: 8, Until: 5 * second})
		})
	}
}

// A lease that is got anew without a word about the one before it is a new term.
func TestLeadsAnew(t *testing.T) {
	c := newCandidate(t)
	c.hear(0, bylease.Appointed{Term: 7, Until: 3 * second}, byrecord.Lead{Term: 7, Until: 3 * second})
	c.hear(second, bylease.Appointed{Term: 8, Until: 4 * second}, byrecord.StepDown{}, byrecord.Lead{Term: 8, Until: 4 * second})
}

func TestResigns(t *testing.T) {
	t.Run("who leads, when the lease is given up", func(t *testing.T) {
		c := newCandidate(t)
		c.hear(0, bylease.Appointed{Term: 7, Until: 3 * second}, byrecord.Lead{Term: 7, Until: 3 * second})
		c.hear(second, byrecord.Resign{}, byrecord.StepDown{})
		c.hear(second, byrecord.Resign{})
		c.hear(second, bylease.Dismissed{}, byrecord.Resigned{})
		c.hear(second, bylease.Dismissed{})
	})
	t.Run("who does not, at once, and never leads again", func(t *testing.T) {
		c := newCandidate(t)
		c.hear(0, byrecord.Resign{}, byrecord.Resigned{})
		c.hear(0, bylease.Appointed{Term: 7, Until: 3 * second})
		c.leads(0, false)
	})
}

func TestKnowsWhoLeads(t *testing.T) {
	c := newCandidate(t)
	knows := func(now mono.Instant, id string, term leasehold.Term, stale bool) {
		t.Helper()
		if got, in := c.m.Leader(); string(got) != id || in != term || c.m.Stale(now) != stale {
			t.Errorf("at %v it knows %q in %d, stale %v; want %q, %d, %v", now, got, in, c.m.Stale(now), id, term, stale)
		}
	}
	knows(0, "", 0, true)
	c.hear(0, bylease.Leads{Manager: "other", Term: 5})
	knows(second, "other", 5, false)
	knows(3*second, "other", 5, true) // and not a word since
	c.hear(second, bylease.Leads{Manager: "old", Term: 4})
	knows(second, "other", 5, false)
	c.hear(second, bylease.Appointed{Term: 7, Until: 3 * second}, byrecord.Lead{Term: 7, Until: 3 * second})
	knows(second, "me", 7, false)
	c.hear(second, bylease.Leads{Manager: "other", Term: 9}) // we know better
	knows(second, "me", 7, false)
	c.hear(second, bylease.Dismissed{}, byrecord.StepDown{})
	knows(second, "", 7, true)
	c.hear(second, bylease.Leads{Manager: "me", Term: 7}) // from before
	knows(second, "", 7, true)
}

func TestConfigRefuses(t *testing.T) {
	for _, cfg := range []bylease.Config{{}, {Self: "me", Drift: 0.5}, {Self: "me", Drift: 11}, {Self: "me", Fade: -1}} {
		if _, err := bylease.New(cfg); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
