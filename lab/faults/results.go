package faults

import (
	"encoding/json"
	"os"
)

// A Run is something that was run, once, and what came of it.
type Run struct {
	Kind    Kind   `json:"kind"`
	Command string `json:"command"`
	Date    string `json:"date"` // 2026-11-16
	Size    string `json:"size"` // of it, for people
	// Violations is how often something did not hold that must, or how many tests failed.
	Violations int `json:"violations"`
	// Counts is how often each of its proofs has happened: how often a fault has struck, how
	// often a test has passed.
	Counts map[string]int `json:"counts"`
	// Failures is how often each test has failed.
	Failures map[string]int `json:"failures,omitempty"`
}

// Results are the runs that the page tells of.
type Results struct {
	Runs []Run `json:"runs"`
}

// ReadResults reads what a recorder has written.
func ReadResults(file string) (*Results, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Results{}
	return r, json.Unmarshal(text, r)
}

// Write writes results, for people to read, too.
func (r *Results) Write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // a document
}

// key is the name of a proof in counts.
func (p Proof) key() string {
	if p.Kind == Test {
		return p.String()
	}
	return p.Name
}

// Of returns how often a proof has run, and how often something was violated when it did. That is
// known of each test; a violation in a campaign counts against all that struck in it.
func (r *Results) Of(p Proof) (runs, violations int) {
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Kind != p.Kind {
			continue
		}
		runs += run.Counts[p.key()]
		switch {
		case p.Kind == Test:
			violations += run.Failures[p.key()]
		case run.Counts[p.key()] > 0:
			violations += run.Violations
		}
	}
	return runs, violations
}

// OfCase adds up what is known of a case, by the kinds of its proofs. A violation of a campaign
// counts once, however many of the proofs struck in it.
func (r *Results) OfCase(c *Case) (runs map[Kind]int, violations int) {
	runs = make(map[Kind]int)
	most := make(map[Kind]int)
	for _, p := range c.Proofs {
		n, v := r.Of(p)
		runs[p.Kind] += n
		if p.Kind == Test {
			violations += v
			continue
		}
		most[p.Kind] = max(most[p.Kind], v)
	}
	for _, v := range most {
		violations += v
	}
	return runs, violations
}
