package check

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
)

// Unanswered is how many registers have not answered callers that live since a time: each of
// them is to answer each. A lookup that is stuck has owners that there are no more, and goes back
// on nothing.
func (b *Book) Unanswered(since oracle.Time, names []string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.callers {
		for _, name := range names {
			if !c.gone && c.answered[name] < since {
				n++
			}
		}
	}
	return n
}

// Lost notes that callers did not find owners that there were (I6).
func (b *Book) Lost(took time.Duration, unanswered int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add("I6", "callers did not find owners", "%v after faults stopped %d registers had not answered a caller, although all had owners", took, unanswered)
}
