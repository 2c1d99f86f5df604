package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/sim"
)

// A simReport is how a campaign went, as a script wants to know it: it is what
// --json prints. Fields may be added; none is renamed or removed.
type simReport struct {
	Seeds     int       `json:"seeds"` // worlds that were run
	FirstSeed uint64    `json:"firstSeed"`
	Ended     ending    `json:"ended"`
	Mutant    string    `json:"mutant,omitempty"` // the bug that was planted
	Failed    int       `json:"violations"`
	Failures  []failure `json:"failures"`
	Hours     float64   `json:"simulatedHours"`
	Speedup   float64   `json:"speedup"` // simulated time by elapsed time
	Elapsed   float64   `json:"elapsedSeconds"`
	Events    uint64    `json:"events"`
	Messages  uint64    `json:"messages"`
	Checks    uint64    `json:"checks"`
	ByCheck   tally     `json:"checksByInvariant"`
	Faults    tally     `json:"faults"` // those that struck
	Branches  tally     `json:"branches"`
	Missed    []string  `json:"branchesMissed"`
	Hash      string    `json:"traceHash"` // the same for the same flags, if the campaign was completed
	planned   int       // seeds that were asked for
	mix       sim.Mix   // of faults
}

// tally counts things by name.
type tally map[string]uint64

// A failure is a violation and how to see it happen.
type failure struct {
	Seed      uint64 `json:"seed"`
	Invariant string `json:"invariant"`
	At        string `json:"at"` // time since the start of the world: 1m2.5s
	Text      string `json:"text"`
	Replay    string `json:"replay"` // a command
}

// An ending is why a campaign ended.
type ending string

const (
	completed   ending = "completed"   // all worlds were run
	stopped     ending = "stopped"     // --stop-after violations were found
	interrupted ending = "interrupted" // the user did not want to wait
)

// report makes a report of a campaign with these options.
func (o *simOptions) report(s *sim.Summary, wasInterrupted bool) *simReport {
	r := &simReport{
		Seeds: s.Seeds, FirstSeed: o.first, Ended: completed, Mutant: o.planted,
		Failed: len(s.Failures), Failures: []failure{},
		Hours: s.Simulated.Hours(), Speedup: s.Speedup(), Elapsed: s.Elapsed.Seconds(),
		Events: s.Events, Messages: s.Messages, Checks: s.TotalChecks(),
		ByCheck: s.Checks, Faults: s.Faults, Branches: s.Branches, Missed: s.Missed(),
		Hash: hashText(s.Hash), planned: o.seeds, mix: o.config.Faults,
	}
	if r.Missed == nil {
		r.Missed = []string{} // no list is not an empty list to a JSON reader
	}
	for _, f := range s.Failures {
		r.Failures = append(r.Failures, o.failure(f.Seed, f.Violation))
	}
	switch {
	case s.Seeds == o.seeds:
	case wasInterrupted:
		r.Ended = interrupted
	default:
		r.Ended = stopped
	}
	return r
}

func (o *simOptions) failure(seed uint64, v *sim.Violation) failure {
	return failure{Seed: seed, Invariant: v.Invariant, At: v.At.String(), Text: v.Text, Replay: o.replay(seed)}
}

func hashText(hash uint64) string { return fmt.Sprintf("%016x", hash) }

// status is the exit status that a report amounts to.
func (r *simReport) status() status {
	switch {
	case r.Failed > 0:
		return statusViolated
	case r.Ended == interrupted:
		return statusInterrupted
	case r.Mutant != "":
		return statusSurvived
	}
	return statusOK
}

func (r *simReport) json() string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // arrows in texts are to be read by people
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		panic(err) // numbers, strings, and lists and maps of them
	}
	return text.String()
}
