// Package agent is a local HTTP/JSON API that gives programs in any language what
// the owner and the lookup library give programs in Go. docs/AGENT.md is the
// reference of the API.
//
// # DESIGN
//
// The problem: an owner checks a lease against its own clock, and acts at once. A
// program that has to ask another process reads the answer later, and nobody can
// say how much later. In between the lease may have run out, or the leader may
// have called it back and given it to another server.
//
// The idea: an answer says for how long it stays true, and two things make that so.
//
// First, no clock is compared with another. The program reads its clock before it
// sends its question, at t. The agent answers "true for v from now", and its now
// is later than t. So t + v, on the program's clock, is earlier than the end that
// the agent means, however long question and answer were under way. That the
// program's clock may run more slowly is allowed for within the drift bound; on one
// computer the two run alike.
//
// Second, the agent keeps what it says. [owner.Owner.Promise] holds back the message
// by which the leader would learn that a lease is free, for as long as somebody may
// rely on it, for whatever reason it ended: the leader wants it back, the program
// leaves or is silent, the agent stops, the computer slept. That costs the next
// owner of a range up to a second, and is why v is short.
//
// What if:
//
//   - the program is stopped after it has looked at its clock: as with the library,
//     it acts late, and must look again before a result leaves it (Held); for what has
//     left it there is the generation, the fencing token.
//   - the agent is stopped, and goes on: the program hears nothing, and its answers
//     are over after v. The agent's leases run out on the manager's clock, or are
//     still there.
//   - the agent is killed: the program may rely on its answers for v. The leases are
//     waited out by the manager, for longer than that: nobody proves that the agent's
//     process is gone ([owner.Config.WaitForPredecessor]), because it is not the process
//     that acts.
//   - the program is killed: its owner is closed when nothing has been heard of it for
//     as long as it said when it joined, or a second after its stream of events broke.
//   - the computer is suspended: the agent finds its leases gone. The program's clock may
//     have stood still, and v with it. It must count on a clock that goes on in sleep,
//     or on the wall clock besides: see docs/AGENT.md.
//
// The state of keys is not moved between owners of an agent: it is in another process.
// Keys that go to another owner are reported as lost.
//
// # Who may
//
// On the loopback or a socket whoever reaches the agent may use it. With a policy
// (Config.Access) and TLS, a program shows a certificate, and may join under the names that
// the policy lets it have; each request about an owner is decided about again, so that to
// know its id is not enough; and a program that may no longer, because the policy says so
// or its certificate was revoked, is closed as one that leaves. To look up keys takes the
// role lookup, by certificate or by token. To the managers the agent shows itself.
//
// # Bounds
//
// Owners, namespaces that are looked up, connections, streams, bodies, headers and
// waiting times are bounded; whatever is refused for that is refused with an error that
// says so. A stream whose reader is slow is told what is the case now in place of what
// it has missed.
package agent
