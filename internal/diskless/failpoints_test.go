//go:build failpoints

package diskless_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/failpoint"
)

// A manager that stood still before it was told that it leads has that much less time to.
func TestTimeCountsFromBeforeThePointOfAppointment(t *testing.T) {
	t.Cleanup(failpoint.Reset)
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
		const pause = 500 * time.Millisecond // and no renewal meanwhile
		if err := failpoint.Arm("diskless/before-appointed=pause:for=500ms"); err != nil {
			t.Fatal(err)
		}
		for range 60_000 {
			time.Sleep(time.Millisecond)
			for _, s := range seats {
				term, left := s.leads()
				if term == 0 {
					continue
				}
				if most := 2*time.Second - pause; left > most {
					t.Errorf("it leads for %v, want %v at most", left, most)
				}
				return
			}
		}
		t.Error("nobody leads")
	})
}
