package bylease_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/bylease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// noted returns how often the machine notes something when an event happens.
func (c *candidate) noted(now mono.Instant, e byrecord.Event, what byrecord.Notable) (n int) {
	actions, _ := c.m.Step(now, e)
	for _, a := range actions {
		if note, ok := a.(byrecord.Note); ok && note.What == what {
			n++
		}
	}
	return n
}

// An owner that has heard of a higher term is believed by a manager that has not known any leader for long: the group may have
// forgotten. The next term is to be above that.
func TestClaimOfAnOwner(t *testing.T) {
	c := newCandidate(t)
	c.hear(0, bylease.Appointed{Term: 7, Until: 1000 * second}, byrecord.Lead{Term: 7, Until: 1000 * second})
	c.hear(second, byrecord.Outranked{By: 7})
	c.hear(second, byrecord.Outranked{By: 9}, byrecord.StepDown{Above: 9})
	c.hear(2*second, byrecord.Outranked{By: 12}) // it does not lead
}

// After some time what the managers remember is all that owners can have heard of. It is noted, but not for every message.
func TestClaimThatMemoryDisproves(t *testing.T) {
	for name, since := range map[string]bylease.Event{
		"it has led":                    bylease.Appointed{Term: 7, Until: 1000 * second},
		"it has known another's leader": bylease.Leads{Manager: "other", Term: 6},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCandidate(t)
			c.m.Hear(0, since)
			c.m.Hear(299*second, bylease.Appointed{Term: 8, Until: 1000 * second})
			c.hear(300*second, byrecord.Outranked{By: 9})
			c.leads(300*second, true)
			if a, b, d := c.noted(301*second, byrecord.Outranked{By: 9}, byrecord.NoteDisbelieved), c.noted(303*second, byrecord.Outranked{By: 9}, byrecord.NoteDisbelieved),
				c.noted(304*second, byrecord.Outranked{By: 9}, byrecord.NoteDisbelieved); a != 0 || b != 1 || d != 0 {
				t.Errorf("it is noted %d, %d and %d times, want once in three seconds", a, b, d)
			}
			c.hear(310*second, byrecord.Outranked{By: 9, Manager: true}, byrecord.StepDown{Above: 9}) // a manager knows
		})
	}
	t.Run("nobody has led so far", func(t *testing.T) {
		c := newCandidate(t)
		c.m.Hear(0, bylease.Leads{})
		c.m.Hear(1000*second, bylease.Appointed{Term: 7, Until: 2000 * second})
		c.hear(1001*second, byrecord.Outranked{By: 9}, byrecord.StepDown{Above: 9})
	})
}

// Who is believed may be wrong: so the next claim counts only 12 s later, the one after that 24 s, and so on.
func TestClaimsCountEverMoreRarely(t *testing.T) {
	c := newCandidate(t)
	term, last := leasehold.Term(7), mono.Instant(0)
	var waits []time.Duration
	for now := mono.Instant(0); now < 400*second; now += second {
		if !c.m.Leads(now) {
			term += 2
			c.m.Hear(now, bylease.Appointed{Term: term, Until: now.Add(time.Hour)})
		}
		c.m.Step(now, byrecord.Outranked{By: term + 1})
		if !c.m.Leads(now) {
			waits, last = append(waits, now.Sub(last)), now
		}
	}
	want := []time.Duration{0, 12 * time.Second, 24 * time.Second, 48 * time.Second, 96 * time.Second}
	if len(waits) != len(want) {
		t.Fatalf("claims count after %v, want %v", waits, want)
	}
	for i := range want {
		if waits[i] != want[i] {
			t.Errorf("claims count after %v, want %v", waits, want)
		}
	}
}
