// Package style holds the tests of the rules that the compiler cannot know: it
// has no code of its own.
//
// The machines are pure (purity_test.go): what decides about leases reads no
// clock, starts no goroutine, takes no lock, touches no network or disk, keeps
// no global state and draws no randomness that it was not given. That is what
// lets the simulator run the very code that production runs, and replay a
// failure from its seed.
//
// The libraries stay small (dependencies_test.go): a service that imports the
// vocabulary, a machine or a policy links nothing else, and one that links an
// owner or a lookup does not link a store.
//
// The repository keeps its promises (repository_test.go): what the automation
// runs is what a developer runs, and make help tells of every target.
package style
