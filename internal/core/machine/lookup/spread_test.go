package lookup_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A leader that has not replied to requests broadcasts two changes. The lookups do not all request the table at
// the same time: the second change does not cancel the random delay of their requests.
func TestSecondChangeKeepsTheSpread(t *testing.T) {
	c := callerAt(t, 2)
	c.untilRequest("ask m from 2")
	c.untilRequest("leader silent", "ask all from 2")
	var at mono.Instant
	for range 4 {
		at = c.untilRequest("ask all from 2")
	}
	c.receive(at+1, unsolicited(c.changes(4, 6)), "gap")
	c.receive(at+2, unsolicited(c.changes(6, 7)), "gap")
	if asked := c.untilRequest("ask m from 2"); asked <= at+2 {
		t.Errorf("request at %v, without a delay after the broadcast", asked)
	}
}

// Refresh is no evidence that managers reply: the backoff continues.
func TestRefreshKeepsTheBackoff(t *testing.T) {
	c := callerAt(t, 2)
	c.untilRequest("ask m from 2")
	c.untilRequest("leader silent", "ask all from 2")
	var at mono.Instant
	for range 4 {
		at = c.untilRequest("ask all from 2")
	}
	next := c.wake
	c.step(at+1, lookup.Refresh{})
	if c.wake != next {
		t.Errorf("next request at %v, want %v", c.wake, next)
	}
}
