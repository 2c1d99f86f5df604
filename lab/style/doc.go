// Package style tests rules that the compiler does not check. It has no code of its own.
//
// The machines are pure (purity_test.go): code that decides about leases reads no clock, starts no goroutine,
// takes no lock, uses no network or disk, has no global state and uses only the randomness that it is given.
// So the simulator runs the same code as production, and replays a failure from its seed.
//
// The libraries have few dependencies (dependencies_test.go): a service that imports the vocabulary, a
// machine or a policy links nothing else, and one that links an owner or a lookup does not link a store.
//
// The repository is consistent (repository_test.go): the automation runs the same commands as a developer,
// and make help lists every target.
package style
