// Package faults is the catalogue of what may happen to us: each case with what must hold
// then, and with what proves that it does. docs/FAULTS.md is made of it.
//
// A proof is something that runs: a test, a kind of fault of "leasehold-lab chaos", a fault or a
// branch of a simulator. A test of this package looks each of them up where it is defined, so
// that none can be renamed or removed unnoticed, and fails if a case has none.
//
// How often each has run, and how often something was violated, is in results.json. To run them
// and write that file and the page anew:
//
//	go run ./lab/faults/record              # the tests and the simulators, some minutes
//	go run ./lab/faults/record -chaos bin/chaos.json,bin/soak.json,bin/beyond.json # what make chaos and make soak have left
package faults
