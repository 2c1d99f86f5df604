package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// A Case is a fault.
type Case struct {
	Number int
	Part   string // section of the catalog
	What   string // the fault
	Must   string // the property that must hold
	Tries  string // the affected invariants, as "I1 I2"
	Open   string // known limitation
	Proofs []Proof
}

// A Kind is a kind of proof.
type Kind string

// The kinds of proofs.
const (
	Test   Kind = "test"   // a Go test
	Chaos  Kind = "chaos"  // a kind of fault of "leasehold-lab chaos"
	Sim    Kind = "sim"    // a fault, or "machine: branch", of "leasehold-lab sim"
	Flease Kind = "flease" // a fault of "leasehold-lab flease sim"
)

// A Proof is a test or a simulated fault, which fails if the property does not hold.
type Proof struct {
	Kind Kind
	Name string // of a test: TestName, or TestName/subtest
	Dir  string // of a test: its directory, relative to the module
	Tags string // of a test: its build tags
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

// tests returns proofs that are tests of a directory.
func tests(dir string, names ...string) []Proof { return proofs(Test, dir, "", names) }

// pointed returns tests that need failpoints.
func pointed(dir string, names ...string) []Proof { return proofs(Test, dir, "failpoints", names) }

// chaos returns proofs that are kinds of faults of real clusters.
func chaos(names ...string) []Proof { return proofs(Chaos, "", "", names) }

// simulated returns proofs that are faults and branches of simulated clusters.
func simulated(names ...string) []Proof { return proofs(Sim, "", "", names) }

// leased returns proofs that are faults of simulated Flease groups.
func leased(names ...string) []Proof { return proofs(Flease, "", "", names) }

func proofs(k Kind, dir, tags string, names []string) (all []Proof) {
	for _, n := range names {
		all = append(all, Proof{Kind: k, Name: n, Dir: dir, Tags: tags})
	}
	return all
}

func by(lists ...[]Proof) []Proof { return slices.Concat(lists...) }

// A Run is the result of one run of a command.
type Run struct {
	Kind    Kind   `json:"kind"`
	Command string `json:"command"`
	Date    string `json:"date"` // 2026-11-16
	Size    string `json:"size"` // such as "10000 worlds"
	// Violations is the number of violations, or of failed tests.
	Violations int `json:"violations"`
	// Counts is the number of occurrences of each proof: of injected faults, or of passed tests.
	Counts map[string]int `json:"counts"`
	// Failures is the number of failures of each test.
	Failures map[string]int `json:"failures,omitempty"`
}

// Results are the runs on the page.
type Results struct {
	Runs []Run `json:"runs"`
}

// ReadResults reads the results that a recorder has written.
func ReadResults(file string) (*Results, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Results{}
	return r, json.Unmarshal(text, r)
}

// Put replaces an older run of the same command, or adds the run.
func (r *Results) Put(run Run) {
	i := slices.IndexFunc(r.Runs, func(old Run) bool { return old.Command == run.Command })
	if i < 0 {
		r.Runs = append(r.Runs, run)
	} else {
		r.Runs[i] = run
	}
}

// Has reports whether there is a run of a command.
func (r *Results) Has(command string) bool {
	return slices.ContainsFunc(r.Runs, func(run Run) bool { return run.Command == command })
}

// Write writes results as indented JSON.
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

// Of returns the number of runs of a proof, and of violations in them. For tests, the violations are known
// exactly; a violation in a campaign counts for all faults in it.
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

// OfCase returns the sums for a case, by the kinds of its proofs. A violation of a campaign counts once, even
// if several of the proofs occurred in it.
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
