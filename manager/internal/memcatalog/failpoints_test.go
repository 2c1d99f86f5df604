//go:build failpoints

package memcatalog_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// A manager that stood still before it was told that it leads has that much less time to.
func TestTimeCountsFromBeforeThePointOfAppointment(t *testing.T) {
	t.Cleanup(failpoint.Reset)
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
		const pause = 500 * time.Millisecond // and no renewal meanwhile
		if err := failpoint.Arm("memcatalog/before-appointed=pause:for=500ms"); err != nil {
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

// A leader that stood still at the point at which enough managers had confirmed a change, until its lease
// was over, does not say that the change is there to stay: another may lead, and may not have found it.
func TestWrittenBeforeThePointOfDismissal(t *testing.T) {
	t.Cleanup(failpoint.Reset)
	for pause, want := range map[string]storage.Outcome{"500ms": storage.Done, "3s": storage.Unknown} {
		inHall(t, func(t *testing.T, h *hall) {
			seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
			leader, c := h.leader(seats...)
			for _, s := range seats { // its lease, of 2 s, is not renewed any more
				if s != leader {
					h.net.Cut(leader.ID(), s.ID())
					h.net.Cut(s.ID(), leader.ID())
				}
			}
			if err := failpoint.Arm("memcatalog/catalog-confirmed=pause:for=" + pause); err != nil {
				t.Fatal(err)
			}
			o, err := leader.SaveCatalog(t.Context(), with(c, "a"))
			if o != want || (err != nil) != (o == storage.Unknown) {
				t.Errorf("after %s the outcome is %v, want %v: %v", pause, o, want, err)
			}
		})
	}
}
