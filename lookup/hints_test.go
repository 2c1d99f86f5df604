package lookup

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// Hints fade while the table is the same, down to one in a poll, and are heard
// again when it has changed.
func TestHints(t *testing.T) {
	const poll = 5 * time.Second
	h := hints{longest: poll}
	now, lsn := mono.Instant(0), leasehold.LSN(1)
	// next returns how long it takes until one of many hints is passed on.
	next := func() time.Duration {
		for since := now; ; now = now.Add(time.Millisecond) {
			if h.take(now, lsn) {
				return now.Sub(since)
			}
		}
	}
	if wait := next(); wait != 0 {
		t.Errorf("the first waits for %v", wait)
	}
	for round := range 2 {
		for _, tenths := range []int{1, 2, 4, 8, 16, 32, 50, 50, 50} {
			usual := time.Duration(tenths) * time.Second / 10
			least := max(usual/2, shortestHint)
			if wait := next(); wait < least || wait > usual {
				t.Errorf("round %d: waits for %v, want %v to %v", round, wait, least, usual)
			}
		}
		lsn++
		if wait := next(); wait != shortestHint {
			t.Errorf("after a change it waits for %v", wait)
		}
	}
}
