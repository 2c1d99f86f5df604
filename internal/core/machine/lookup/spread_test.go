package lookup_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A leader that has left requests unanswered sends two changes, one after the other, to all lookups. They do not all
// ask for the table at the same time: the second change does not undo the spread of their requests.
func TestSecondChangeKeepsTheSpread(t *testing.T) {
	c := callerAt(t, 2)
	c.untilAsked("ask m from 2")
	c.untilAsked("leader silent", "ask everyone from 2")
	var at mono.Instant
	for range 4 {
		at = c.untilAsked("ask everyone from 2")
	}
	c.hear(at+1, unasked(c.changes(4, 6)), "gap")
	c.hear(at+2, unasked(c.changes(6, 7)), "gap")
	if asked := c.untilAsked("ask m from 2"); asked <= at+2 {
		t.Errorf("it asks at %v, as soon as it is told", asked)
	}
}

// A caller that has found the table wrong says nothing about managers that do not answer: the backoff goes on.
func TestRefreshKeepsTheBackoff(t *testing.T) {
	c := callerAt(t, 2)
	c.untilAsked("ask m from 2")
	c.untilAsked("leader silent", "ask everyone from 2")
	var at mono.Instant
	for range 4 {
		at = c.untilAsked("ask everyone from 2")
	}
	next := c.wake
	c.step(at+1, lookup.Refresh{})
	if c.wake != next {
		t.Errorf("it asks at %v, and not at %v", c.wake, next)
	}
}
