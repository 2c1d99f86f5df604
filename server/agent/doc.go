// Package agent is a local HTTP/JSON API that gives programs in any language the features of the owner
// and lookup libraries. docs/AGENT.md explains the API.
//
// # Promises
//
// An owner checks a lease against its own clock, and acts at once. A program that asks another process
// reads the answer after an unknown delay. In between the lease may have expired, or the leader may have
// recalled it and granted it to another server. So an answer contains for how long it is true.
//
// No two clocks are compared. The program reads its clock before it sends its request, at t. The agent
// answers "true for v from now", and its now is later than t. So t + v, on the program's clock, is
// earlier than the end that the agent means, however long request and answer take. A slower clock of the
// program is within the drift bound; on one computer the two have the same rate.
//
// The agent keeps its promise. [owner.Owner.Promise] holds back the message by which the leader would
// learn that a lease is free for as long as a program may rely on it, whatever the reason: the leader
// recalls the lease, the program leaves or is silent, the agent stops, the computer slept. That delays
// the next owner of a range by up to a second, which is why v is short.
//
// What if:
//
//   - the program is stopped after it has read its clock: as with the library, it acts late, and must
//     check again before it sends a result (Held). For results already sent, the generation is the fencing token.
//   - the agent is stopped, and continues: the program gets no answer, and earlier answers end after v.
//     The agent's leases expire on the manager's clock, or are still there.
//   - the agent is killed: the program may rely on its answers for v. The manager waits until the leases
//     have expired, which takes longer. A proof that the agent's process is gone does not shorten that
//     ([owner.Config.WaitForPredecessor]): it is not the process that acts.
//   - the program is killed: its owner is closed when the program has been silent for the TTL that it
//     joined with, or a second after its stream of events broke. If it has bound itself to its process, over
//     a Unix socket, its owner is closed and its promises end as soon as the process has ended: no process
//     relies on them any more. It is not the default: an id may be shared by processes, and a command that
//     makes one request ends after it.
//   - the computer is suspended: the agent finds its leases gone. The program's clock may have stopped,
//     and v with it. It must use a clock that continues in sleep, or the wall clock too: see docs/AGENT.md.
//
// State is not moved between owners of an agent: it is in another process. Keys that go to another owner
// are reported as lost.
//
// # Access control
//
// On the loopback or a socket, every program that reaches the agent may use it. With a policy
// (Config.Access) and TLS, a program needs a certificate, and may join under the names that the policy
// permits. Each request about an owner is authorized again, so an id alone is not enough. A program that
// loses its permission, by the policy or a revoked certificate, is closed as if it left. Lookups need the
// role lookup, by certificate or by token. To the managers the agent authenticates itself.
//
// # Bounds
//
// Owners, namespaces, connections, streams, bodies, headers and waiting times are bounded; an error names
// the limit that rejected a request. A slow reader of a stream receives the current state in place of the
// events that it missed.
package agent
