// Package faults is the catalog of faults: each case with the property that must hold, and the proofs of it.
// docs/FAULTS.md is generated from it.
//
// A proof is a test, a kind of fault of "leasehold-lab chaos", or a fault or a branch of a simulator. A test
// of this package checks that each of them exists, so that none is renamed or removed unnoticed, and that
// each case has at least one.
//
// The number of runs and of violations of each proof is in results.json. To run the proofs and rewrite that
// file and the page:
//
//	go run ./lab/faults/record              # the tests and the simulators, some minutes
//	go run ./lab/faults/record -chaos bin/chaos.json,bin/soak.json,bin/beyond.json # the reports of make chaos and make soak
package faults
