//go:build failpoints

package memcatalog_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// The time of a pause before a manager is appointed counts against its leadership.
func TestPauseBeforeAppointmentShortensLeadership(t *testing.T) {
	t.Cleanup(failpoint.Reset)
	inBubble(t, func(t *testing.T, cl *cluster) {
		members := []*member{cl.start(0), cl.start(1), cl.start(2)}
		const pause = 500 * time.Millisecond // and no renewal meanwhile
		if err := failpoint.Arm("memcatalog/before-appointed=pause:for=500ms"); err != nil {
			t.Fatal(err)
		}
		for range 60_000 {
			time.Sleep(time.Millisecond)
			for _, s := range members {
				term, left := s.leads()
				if term == 0 {
					continue
				}
				if most := 2*time.Second - pause; left > most {
					t.Errorf("leadership lasts for another %v, want at most %v", left, most)
				}
				return
			}
		}
		t.Error("no leader after a minute")
	})
}

// A write is acknowledged by a majority, and the leader pauses before it returns. If its lease expires meanwhile
// the outcome is unknown: a new leader may exist that has not read the change.
func TestPauseBeforeConfirmationMakesWriteUnknown(t *testing.T) {
	t.Cleanup(failpoint.Reset)
	for pause, want := range map[string]storage.Outcome{"500ms": storage.Done, "3s": storage.Unknown} {
		inBubble(t, func(t *testing.T, cl *cluster) {
			members := []*member{cl.start(0), cl.start(1), cl.start(2)}
			leader, c := cl.leader(members...)
			for _, s := range members { // so the leader's lease, of 2 s, is not renewed
				if s != leader {
					cl.net.Cut(leader.ID(), s.ID())
					cl.net.Cut(s.ID(), leader.ID())
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
