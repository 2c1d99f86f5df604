// Package procsim simulates whole processes: managers, owners, lookups and maps in one process, in virtual time, on a
// network, a store and clocks with faults. A seed determines each world.
//
// lab/sim runs the machines; this package runs the shells around them, too: packages owner, lookup, manager, leasemap and
// flease, broadcast, the key-value layer of the store, the catalog of diskless groups and the transfer of state, over gRPC.
// It judges only what an application or a caller can see, and the history of the faults.
//
// # Worlds
//
// A [plan] is drawn from the seed: a group with or without a store, one to three managers with a TTL each, one or two
// namespaces with leases of 1 s to 60 s, owners with or without a map, lookups with different Stale, latencies, rates and
// errors of clocks, and some kinds of faults. First there are faults, then none.
//
//   - computer.go: a process reads the clocks of its computer, which differ in rate, are set, and are suspended.
//   - database.go: each manager has its own path to the store, which is slow, fails before or after the write, or is cut;
//     and the store is restored from a backup.
//   - internal/testkit/memnet: messages take a random time for each path; links are cut, in one direction too, and reset.
//   - liars.go: requests of lookups with terms and LSNs that do not exist.
//
// A paused process neither sends nor receives, and its keys are not checked, but its goroutines run.
//
// # Judges
//
// lab/chaos/check judges the records of owners and lookups, as it does in chaos runs: I1, I2, I3, I4 and I5. In addition:
//
//   - A key without an owner is a violation (I6) unless a fault excuses it. Each fault excuses effects for a bounded time
//     on the keys that it may concern. So a manager with a slow store is excused only until another one can lead, a fault
//     of one namespace excuses nothing in the other (I10), and a liar or a wall clock excuses nothing.
//   - A reported loss is a violation if the lookup's table has the same generation before and after it, also for a reader
//     that resumes, or if the value is still in the map. The same is true for lost contact without a fault.
//   - A lease that expires is a violation if no fault concerned its owner (I11).
//   - An acknowledged value that is missing without a reported loss is a violation (I7).
//
// # Determinism
//
// The same seed draws the same plan and the same faults, as long as the processes behave the same. Sessions and jitter are
// from crypto/rand, which the test seeds. Not deterministic are the order in which the scheduler runs goroutines that are
// ready at the same virtual instant, the choice of a select statement among several ready cases, the order of maps, and
// randomness of math/rand in gRPC. GOMAXPROCS=1 removes the largest part. A history has a hash that does not depend on
// the order of events at one instant, so replays can be compared: docs/RELIABILITY.md has the share of equal ones. A
// failure that is not reproduced at once needs a few replays.
package procsim
