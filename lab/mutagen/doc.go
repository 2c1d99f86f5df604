// Command mutagen generates mutants of a package, such as a negated condition or a deleted statement, and runs tests
// and simulators against each. It prints those that survive, with their place and the change:
//
//	go run ./lab/mutagen -package ./internal/core/table            # all mutants of one package
//	go run ./lab/mutagen -for 1h                                   # all packages, as many mutants as fit
//	go run ./lab/mutagen -package ./internal/core/table -again     # the survivors once more, after a new test
//	go run ./lab/mutagen -changed main -for 2m                     # a sample of the functions that differ from main
//
// Run it in the root of the repository. Package mutant has bugs that are planted by hand.
//
// # Schemata
//
// mutate.go finds changes in the source. schema.go appends one copy of the function per mutant to the file, with the
// change, and the original begins with a switch that calls the copy that the environment selects. So a package is
// compiled once for all of its mutants, and each mutant costs one process. The changed files are an overlay of go
// build: the checkout stays as it is. check.go drops mutants that do not compile. Only the bodies of functions are
// mutated: declarations of constants, variables and types are not.
//
// # Stages
//
// target.go lists the packages and the stages of each: first its own tests, then tests of packages that use it, or
// worlds of a simulator. stage.go records which functions each test runs, and runs only these tests against a
// mutant, the fast ones first. Tests that need more than three seconds, or fail on their own, are not used. A mutant in
// a function that no stage runs survives without a run. A process that needs several times the CPU time of the
// original, or is blocked, counts as killed.
//
// # Results
//
// results.go keeps the results in bin/mutants, by the text of each function, so that an interrupted run continues and
// a changed function is run again. The survivors of a package are in survivors.txt. A survivor that no test can kill
// has the reason there, indented under its name:
//
//	Set.Add: delete: s.sorted = false
//	    equivalent: the caller sorts
//
// After such a change, run the command with -page. Kill rates, without equivalent mutants, are in rates.json, and docs/MUTANTS.md is generated from it. A package has
// a floor, its best rate so far: a test fails if the rate is lower.
//
// # Why not a published tool
//
// Gremlins and go-mutesting compile each mutant, which takes hours here, and neither can run a simulator as a second
// stage.
package main
