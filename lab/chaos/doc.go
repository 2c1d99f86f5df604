// Package chaos runs real clusters under faults, and checks the records of owners and callers against
// Leasehold's invariants. The simulator checks the state machines; this is about shells, store, network
// and system. All is real but the links between hosts:
//
//   - lan: hosts, each a network namespace, and a switch between them
//   - actor: the processes that are not managers; history: their records
//   - cluster: all processes of a run, in one of three shapes
//   - nemesis: the faults
//   - check: the invariants
//   - leaks: memory, goroutines and descriptors of processes, which must not grow
//
// A run is a sequence of storms. In a storm faults overlap, and only safety is checked. Then everything
// is healed, and every key must have an owner within the bound of I6. The seed decides the faults, but not
// the scheduling of processes.
//
// A run with a violation leaves a directory with logs, histories, the report, and the command that
// repeats it.
package chaos
