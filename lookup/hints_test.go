package lookup

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// The interval of hints doubles up to a poll while the table does not change. A change resets it.
func TestHintsBackOff(t *testing.T) {
	const poll = 5 * time.Second
	h := hints{maxInterval: poll}
	now, lsn := mono.Instant(0), leasehold.LSN(1)
	// next returns the time until the next hint is allowed.
	next := func() time.Duration {
		for since := now; ; now = now.Add(time.Millisecond) {
			if h.allow(now, lsn) {
				return now.Sub(since)
			}
		}
	}
	if wait := next(); wait != 0 {
		t.Errorf("the first hint waits for %v", wait)
	}
	for round := range 2 {
		for _, tenths := range []int{1, 2, 4, 8, 16, 32, 50, 50, 50} {
			usual := time.Duration(tenths) * time.Second / 10
			least := max(usual/2, minHintInterval)
			if wait := next(); wait < least || wait > usual {
				t.Errorf("round %d: a hint waits for %v, want %v to %v", round, wait, least, usual)
			}
		}
		lsn++
		if wait := next(); wait != minHintInterval {
			t.Errorf("after a change a hint waits for %v", wait)
		}
	}
}
