package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// A Case is something that may happen.
type Case struct {
	Number int
	Part   string // of the catalogue
	What   string // happens
	Must   string // hold then
	Tries  string // the invariants that it tries to break, as "I1 I2"
	Open   string // what is not so yet, or cannot be
	Proofs []Proof
}

// A Kind says what runs a proof.
type Kind string

// The kinds of proofs.
const (
	Test   Kind = "test"   // a Go test
	Chaos  Kind = "chaos"  // a kind of fault of "leasehold-lab chaos"
	Sim    Kind = "sim"    // a fault, or "machine: branch", of "leasehold-lab sim"
	Flease Kind = "flease" // a fault of "leasehold-lab flease sim"
)

// A Proof is something that runs, and fails if what must hold does not.
type Proof struct {
	Kind Kind
	Name string // of a test: TestName, or TestName/subtest
	Dir  string // of a test: where it is, relative to the module
	Tags string // of a test: with which it is built
}

func (p Proof) String() string {
	if p.Kind == Test {
		return p.Dir + "." + p.Name
	}
	return fmt.Sprintf("%s %s", p.Kind, p.Name)
}

func part(name string, cases []Case) []Case {
	cases = slices.Clone(cases)
	for i := range cases {
		cases[i].Part = name
	}
	return cases
}

// tests are proofs: tests of a directory.
func tests(dir string, names ...string) []Proof { return proofs(Test, dir, "", names) }

// pointed are tests that need failpoints.
func pointed(dir string, names ...string) []Proof { return proofs(Test, dir, "failpoints", names) }

// chaos are proofs: kinds of faults that real clusters suffer.
func chaos(names ...string) []Proof { return proofs(Chaos, "", "", names) }

// simulated are proofs: faults and branches of simulated clusters.
func simulated(names ...string) []Proof { return proofs(Sim, "", "", names) }

// leased are proofs: faults of simulated groups of Flease.
func leased(names ...string) []Proof { return proofs(Flease, "", "", names) }

func proofs(k Kind, dir, tags string, names []string) (all []Proof) {
	for _, n := range names {
		all = append(all, Proof{Kind: k, Name: n, Dir: dir, Tags: tags})
	}
	return all
}

func by(lists ...[]Proof) []Proof { return slices.Concat(lists...) }

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

// Put puts a run in the place of an older one of the same command.
func (r *Results) Put(run Run) {
	i := slices.IndexFunc(r.Runs, func(old Run) bool { return old.Command == run.Command })
	if i < 0 {
		r.Runs = append(r.Runs, run)
	} else {
		r.Runs[i] = run
	}
}

// Write writes results, for people to read, too.
func (r *Results) Write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // a document
}

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
