package search

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
	"github.com/leasehold-dev/leasehold/server/console"
)

// A report is the JSON form of the result of a campaign. Fields may be added; none is renamed or removed.
type report struct {
	Seeds     int        `json:"seeds"` // number of worlds that were run
	FirstSeed uint64     `json:"firstSeed"`
	Ended     ending     `json:"ended"`
	Mutant    string     `json:"mutant,omitempty"` // name of the planted bug
	Failed    int        `json:"violations"`
	Failures  []failure  `json:"failures"`
	Hours     float64    `json:"simulatedHours"`
	Speedup   float64    `json:"speedup"` // simulated time by elapsed time
	Elapsed   float64    `json:"elapsedSeconds"`
	Events    uint64     `json:"events"`
	Messages  uint64     `json:"messages"`
	Checks    uint64     `json:"checks"`
	ByCheck   tally      `json:"checksByInvariant"`
	Faults    tally      `json:"faults"`           // injected
	Worlds    tally      `json:"worlds,omitempty"` // by kind
	Branches  tally      `json:"branches,omitempty"`
	Notices   tally      `json:"notices,omitempty"`
	Missed    []string   `json:"branchesMissed"`
	Hash      string     `json:"traceHash"` // the same for the same flags, if the campaign is complete
	planned   int        // requested number of seeds
	mix       engine.Mix // of faults
}

type tally map[string]uint64

// A failure is a violation and the command that repeats it.
type failure struct {
	Seed      uint64 `json:"seed"`
	Invariant string `json:"invariant"`
	At        string `json:"at"` // time since the start of the world: 1m2.5s
	Text      string `json:"text"`
	Replay    string `json:"replay"` // a command
}

// An ending is the reason why a campaign ended.
type ending string

const (
	completed   ending = "completed"   // all worlds were run
	stopped     ending = "stopped"     // after --stop-after violations
	interrupted ending = "interrupted" // by the user
)

func (s *Job) report(sum *engine.Summary, wasInterrupted bool) *report {
	r := &report{
		Seeds: sum.Seeds, FirstSeed: s.First, Ended: completed, Mutant: s.Planted,
		Failed: len(sum.Failures), Failures: []failure{},
		Hours: sum.Simulated.Hours(), Speedup: sum.Speedup(), Elapsed: sum.Elapsed.Seconds(),
		Events: sum.Events, Messages: sum.Messages, Checks: sum.TotalChecks(),
		ByCheck: sum.Checks, Faults: sum.Faults, Missed: append([]string{}, sum.Missed...),
		Hash: hashText(sum.Hash), planned: s.Seeds, mix: *s.Faults,
	}
	if s.Notices {
		r.Worlds, r.Notices = sum.Kinds, sum.Branches
	} else {
		r.Branches = sum.Branches
	}
	for _, f := range sum.Failures {
		r.Failures = append(r.Failures, s.failure(f.Seed, f.Violation))
	}
	switch {
	case sum.Seeds == s.Seeds:
	case wasInterrupted:
		r.Ended = interrupted
	default:
		r.Ended = stopped
	}
	return r
}

func (s *Job) failure(seed uint64, v *engine.Violation) failure {
	return failure{Seed: seed, Invariant: v.Invariant, At: v.At.String(), Text: v.Text, Replay: s.replaySeed(seed)}
}

func hashText(hash uint64) string { return fmt.Sprintf("%016x", hash) }

// numbers formats the progress of a campaign, short enough for 80 columns with a progress bar.
func (s *Job) numbers(now *engine.Summary) string {
	violations := console.Counted(len(now.Failures), "violation")
	if len(now.Failures) > 0 {
		violations = console.Bad(violations)
	}
	return fmt.Sprintf("%d/%d seeds, %.0f sim h, %sx, %s, ETA %s",
		now.Seeds, s.Seeds, now.Simulated.Hours(), console.Grouped(uint64(now.Speedup())), violations, s.eta(now))
}

// eta returns the remaining time at the current rate.
func (s *Job) eta(now *engine.Summary) string {
	if now.Seeds == 0 {
		return "?"
	}
	perSeed := now.Elapsed / time.Duration(now.Seeds)
	return (perSeed * time.Duration(s.Seeds-now.Seeds)).Round(time.Second).String()
}
