package search

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
	"github.com/leasehold-dev/leasehold/server/console"
)

// numbers is how a campaign is doing, in so few words that a bar fits beside them into 80 columns.
func (s *Job) numbers(now *engine.Summary) string {
	violations := console.Counted(len(now.Failures), "violation")
	if len(now.Failures) > 0 {
		violations = console.Bad(violations)
	}
	return fmt.Sprintf("%d/%d seeds, %.0f sim h, %sx, %s, ETA %s",
		now.Seeds, s.Seeds, now.Simulated.Hours(), console.Grouped(uint64(now.Speedup())), violations, s.eta(now))
}

// eta is how long the rest will take if it takes as long as what is done.
func (s *Job) eta(now *engine.Summary) string {
	if now.Seeds == 0 {
		return "?"
	}
	perSeed := now.Elapsed / time.Duration(now.Seeds)
	return (perSeed * time.Duration(s.Seeds-now.Seeds)).Round(time.Second).String()
}
