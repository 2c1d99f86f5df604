// Package chaos runs real clusters and breaks them, and holds what owners and callers
// have seen against what Leasehold promises.
//
// The simulator proves the machines. This is about what is around them: the shells,
// the store, the network, the system. Everything is real but for the wires:
//
//   - lan: hosts, each a network namespace, and a switch between them
//   - actor: the processes that are not managers
//   - history: what they write down
//   - cluster: all processes of a run, in one of three shapes
//   - nemesis: what is done to them
//   - check: what must hold
//   - vitals: what processes take to live, which must not grow
//
// A run is a row of storms. In a storm faults overlap, and nothing is asked of the
// cluster but safety. Then everything is healed, and every key must have an owner
// within the bound of I6. What a run does is drawn from its seed; what comes of it is
// not, since processes are scheduled as they are.
//
// A run in which something was violated leaves a directory with logs, histories, the
// report, and the command that does it again.
package chaos
