package faults

import (
	"fmt"
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

// Cases returns all cases, in the order of their numbers.
func Cases() []Case {
	return slices.Concat(
		part("Processes and time", processes()), part("Network", network()),
		part("Manager and store", stores()), part("Scale and operation", operation()),
		part("Outages and clocks", outages()))
}

func part(name string, cases []Case) []Case {
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
