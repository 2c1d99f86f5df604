package campaign

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/server/console"

	"github.com/leasehold-dev/leasehold/lab/chaos"
)

// share is how much of a run is done, by time or by faults, whichever ends it sooner.
func share(s chaos.Snapshot) float64 {
	done := 0.0
	if s.Of > 0 {
		done = float64(s.Elapsed) / float64(s.Of)
	}
	if s.Enough > 0 {
		done = max(done, float64(s.Faults)/float64(s.Enough))
	}
	return min(1, done)
}

// numbers is how a run is doing: which, for how long, and what was done.
func numbers(s chaos.Snapshot) string {
	at, faults := s.Elapsed.Round(time.Second).String(), console.Counted(s.Faults, "fault")
	if s.Of > s.Elapsed {
		at += fmt.Sprintf(" of ~%v", s.Of.Round(time.Second))
	}
	if s.Enough > 0 {
		faults = fmt.Sprintf("%d of %s", s.Faults, console.Counted(s.Enough, "fault"))
	}
	text := fmt.Sprintf("%s: %s, %s, %s, %s", s.Store, at, console.Counted(s.Storms, "storm"), faults, s.Doing)
	if s.Broken {
		text += ", " + console.Bad("VIOLATION")
	}
	return text
}
