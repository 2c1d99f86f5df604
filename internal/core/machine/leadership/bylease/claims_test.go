package bylease_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/bylease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// noted returns how many notes of a kind an event causes.
func (c *candidate) noted(now mono.Instant, e byrecord.Event, what byrecord.Notable) (n int) {
	actions, _ := c.m.Step(now, e)
	for _, a := range actions {
		if note, ok := a.(byrecord.Note); ok && note.What == what {
			n++
		}
	}
	return n
}

// The claim of a higher term by an owner counts if this manager has not known a leader for long:
// the group may have lost its memory. The next term must be above the claimed one.
func TestClaimOfAnOwner(t *testing.T) {
	c := newCandidate(t)
	c.step(0, bylease.Appointed{Term: 7, Until: 1000 * second}, byrecord.Lead{Term: 7, Until: 1000 * second})
	c.step(second, byrecord.Outranked{By: 7})
	c.step(second, byrecord.Outranked{By: 9}, byrecord.StepDown{Above: 9})
	c.step(2*second, byrecord.Outranked{By: 12}) // it does not lead
}

// After Config.Remember the managers' memory disproves the claims of owners. A note is limited in
// rate.
func TestClaimThatMemoryDisproves(t *testing.T) {
	for name, since := range map[string]bylease.Event{
		"it has led":                  bylease.Appointed{Term: 7, Until: 1000 * second},
		"it has known another leader": bylease.Leads{Manager: "other", Term: 6},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCandidate(t)
			c.m.StepLease(0, since)
			c.m.StepLease(299*second, bylease.Appointed{Term: 8, Until: 1000 * second})
			c.step(300*second, byrecord.Outranked{By: 9})
			c.leads(300*second, true)
			if a, b, d := c.noted(301*second, byrecord.Outranked{By: 9}, byrecord.NoteDisbelieved), c.noted(303*second, byrecord.Outranked{By: 9}, byrecord.NoteDisbelieved),
				c.noted(304*second, byrecord.Outranked{By: 9}, byrecord.NoteDisbelieved); a != 0 || b != 1 || d != 0 {
				t.Errorf("%d, %d and %d notes, want once in three seconds", a, b, d)
			}
			c.step(310*second, byrecord.Outranked{By: 9, Manager: true}, byrecord.StepDown{Above: 9}) // the claim of a manager counts
		})
	}
	t.Run("no leader so far", func(t *testing.T) {
		c := newCandidate(t)
		c.m.StepLease(0, bylease.Leads{})
		c.m.StepLease(1000*second, bylease.Appointed{Term: 7, Until: 2000 * second})
		c.step(1001*second, byrecord.Outranked{By: 9}, byrecord.StepDown{Above: 9})
	})
}

// A claim that counted may be false: the next one counts only 12 s later, the one after that 24 s,
// and so on.
func TestClaimsCountEverMoreRarely(t *testing.T) {
	c := newCandidate(t)
	term, last := leasehold.Term(7), mono.Instant(0)
	var waits []time.Duration
	for now := mono.Instant(0); now < 400*second; now += second {
		if !c.m.Leads(now) {
			term += 2
			c.m.StepLease(now, bylease.Appointed{Term: term, Until: now.Add(time.Hour)})
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
