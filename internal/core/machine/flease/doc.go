// Package flease is the machine behind package flease of this module: leases
// that a group of processes agrees upon, with no lock server and no disk.
//
// # DESIGN
//
// The algorithm is Flease's (Kolbeck et al., "Flease - Lease Coordination
// without a Lock Server"): a round-based register per resource, read and then
// written with majorities; ballots of time interval, message number and process;
// renewal; crash recovery by waiting. The paper is safe if wall clocks never
// differ by more than epsilon. Ours is safe if that holds, *or* if monotonic
// clocks differ in rate by no more than the drift bound. Neither alone has to be
// believed in.
//
// # Why two processes never believe in a lease at once
//
// A process believes in a lease that it decided upon at a moment, when its wall
// clock showed w and its monotonic clock m, while they show at most w+Lease and
// less than m+Lease. It does so once a majority has accepted it. Each acceptor
// did so after that moment.
//
// A commit counts an acceptor only if its promise was considered when the value
// was chosen, and if it has accepted that value in the same incarnation. Whoever
// chooses a value looks at all that the acceptors report, and takes the lease for
// itself only if nothing of that binds: everything was released, or is over on
// both clocks, or is its own and not believed in. An acceptor writes only in the
// round that it promised last. So whatever replaces a value at an acceptor was
// chosen by someone who knew that value.
//
// Let X and Y be commits for different owners. Their majorities share an acceptor.
//
// If it was the same incarnation of it that took part in both, it accepted one of
// them first, say X. All that it stored after that, up to Y, was chosen by
// proposers that had seen what it stored before. So one of them saw X, or the same
// owner's later renewal or an earlier tale of it, and replaced it by something of
// another owner. It did so because it saw a release; or the wall clock beyond the
// value's end by more than epsilon, which proves by the first assumption that the
// owner has stopped; and the acceptor's own deadline passed, which lasts for Lease
// times the drift bound from acceptance, and proves it by the second. What if that
// owner was renewing in the round that it had got before? It was rejected here,
// where a later one is promised; and it needs a majority, which meets the later
// round's majority somewhere.
//
// If it was not the same incarnation, the acceptor lost its memory in between,
// and then was silent until its clocks had advanced by Lease times the drift
// bound, and by more than Lease and twice epsilon: again each proves by one of the
// assumptions that whatever it had accepted was over. That it has forgotten
// promises too does no harm: a write is accepted only in a round that this
// incarnation promised, and void if it is addressed to another.
//
// The paper lets a proposer look at the value of the highest ballot alone. With
// acceptors that forget promises that is not enough: one of them may accept a
// lease in a round below one that it has promised, and another may still report
// what was written there, long over. The simulator found it.
//
// # Those who ask, and those who have
//
// In the paper every question is a read that voids the round in which the owner
// renews: members that ask often enough take the lease from an owner that is well.
// Here an acceptor that knows of a lease in force promises nothing to others than
// its owner. It says who has the lease instead. Not to promise is always safe.
//
// An answer is given only of what a majority knows. If a majority reports the same
// tenure, be it with promises or in their place, a caller is told at once, with the
// earliest end that was reported. It is true: all of them had accepted that tenure
// when they said so, after the question; whoever takes the lease later reads one of
// them, and finds the tenure binding until that end; and had someone taken it
// before, one of them would have accepted that, and would only have come back to
// the earlier tenure through a proposer who knew nothing of the later one, which no
// majority allows. If too few know of it, the next round insists on promises, and
// the proposer writes the lease again, as the paper has it. Such a write does not
// prolong what acceptors knew of it, or a dead owner's lease would live for as long
// as others ask.
//
// Who waits for a lease is woken by its release, which goes to all members that know
// of the lease. So the owner sees to it that all do: if a member has rejected a
// renewal, or has promised the round too late, the next renewal takes a whole
// round, with a ballot that is well ahead of those that others use to ask there.
// Until then a waiter that does not know of the lease asks now and then.
//
// A renewal is a write in the round that the owner has got already, of a value
// with a higher serial number. It needs no read: had anyone begun a later round
// that could commit, a majority would reject it. So it costs one round trip. If
// it is rejected, or not answered, a whole round follows.
//
// A release is a write of the same kind, sent after the owner has stopped
// believing. It is never undone by what was sent before it.
//
// What acceptors forget, because it is over and nobody asks, leaves two numbers
// behind: the highest ballot promised, and the highest fence seen. A promise
// about a resource that is not known is never made at or below the first, so
// that to forget is not to lose memory.
//
// # Names and refs
//
// Only a read names its resource. All other messages are about what the addressee
// keeps at a ref, which it has told itself: an acceptor in its promise, a proposer
// in what it asks. A ref may have come to mean another resource. But an acceptor
// stores a value only where it has promised that very ballot to that very
// incarnation, and a proposer counts an answer only where it has a bid with that
// very ballot; and nobody uses a ballot for two resources, since each is higher
// than all that were used before. So whatever a ref says, what is stored or counted
// is about the resource that was meant.
//
// # Fences
//
// A tenure's fence is higher than those of all before it: one more than the
// highest that a majority knows of, and at least the wall clock's milliseconds.
//
// It rises even when all processes have forgotten, if wall clocks are within epsilon
// of each other. For no claim is made whose fence is ahead of its maker's clock by
// more than epsilon; if tenures follow each other so fast, the proposer waits. So
// no fence is ever ahead of any clock by more than twice epsilon. A process that has
// forgotten is silent for longer than that, and what it makes then is at least what
// its clock shows.
//
// By the same argument a fence that is ahead by more than twice epsilon was made by
// a clock that was wrong. Nobody waits for it to be reached, which might take years;
// the next one is higher all the same, unless all forget before. If all have forgotten,
// and who remembers asks for it, the next one is higher too: [Machine.Raise].
//
// # What it costs
//
// A lease among three takes three lookups by name, one in each process: that of its
// read. Names of resources that are new are not in the processor's caches, so that
// lookups are most of the cost of anything that has one; they are done side by side,
// as [Machine.Expect] says. Nothing is allocated for a resource or a bid if another
// was forgotten before, but for its name.
//
// # Twins
//
// All of this takes an id to be one process. Two with the same one are found out, and
// one gives way: twin.go says how. Until then leases are not safe, since what one of
// them accepts the other does not know; so it is done while the second one waits.
//
// # Trouble with wall clocks
//
// Where it can be proven that a clock is off by more than epsilon, it is: a jump
// of our own clock against our monotonic one; a message from a peer's future; an
// answer from before the question. Leases are dropped if it is our clock that
// jumped, or that most others differ from. A peer whose clock is off is ignored
// until it is right again.
//
// # Copies of the past
//
// A virtual machine may be taken back to a snapshot, or moved by one. Then its
// processes do not know what they have promised and accepted since it was made. Their
// monotonic clocks go on from there; so, if the wall clock is set right, it leaps
// forward. That cannot be told from other reasons for a leap, and neither from a
// suspension. In all these cases a process forgets everything, takes another
// incarnation, and with it another key for its packets, and is silent as after a
// start. What it costs is a recovery when a clock was behind, or a laptop wakes.
//
// What is not found out is a snapshot that is not older than epsilon, or one after
// which the wall clock is left as it was, as tools do that restore processes
// together with their view of time. Such a process must be ended, and started anew.
package flease
