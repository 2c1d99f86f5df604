package lookup_test

import (
	"testing"
	"time"

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

// A lookup detects by a broadcast that it lacks changes. Then the reply to its last request arrives, from a manager that
// lacks them too: it is sent later than its reply would have been. The lookup still requests them at once, and not
// with its next poll.
func TestLateReplyKeepsTheRequestForMissedChanges(t *testing.T) {
	c := callerAt(t, 2)
	c.untilRequest("ask m from 2")
	c.untilRequest("leader silent", "ask all from 2")
	at := c.untilRequest("ask all from 2")
	c.receive(at+1, unsolicited(c.changes(4, 6)), "gap")
	c.receive(at+2, c.reply(2))
	if asked := c.untilRequest("ask m from 2"); asked > at+1+mono.Instant(500*time.Millisecond) {
		t.Errorf("the missed changes are requested %v after the broadcast", asked.Sub(at))
	}
}
