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
// Rounds are ordered by their ballots. A commit counts an acceptor only if its
// promise was considered when the value was chosen, and if it has accepted that
// value in the same incarnation. Let X and Y be commits, with X's ballot the
// lower. Their majorities share an acceptor.
//
// If it was the same incarnation of it that took part in both: it accepted X
// before it promised Y, because it accepts nothing below its promise. So X, or
// what replaced it in a later round, was reported to whoever decided Y. That one
// took over only if it saw the value released, or over on both clocks: the wall
// clock beyond the value's end by more than epsilon, which proves by the first
// assumption that the owner has stopped; and the acceptor's own deadline, Lease
// times the drift bound after acceptance, which proves it by the second.
//
// If it was not: the acceptor lost its memory in between, and then was silent
// until its clocks had advanced by Lease times the drift bound, and by Lease and
// twice epsilon: again each proves by one of the assumptions that whatever it
// had accepted was over. That it has forgotten promises too does no harm: a
// write is accepted only in the round that this incarnation promised, and void
// if it is addressed to another.
//
// A proposer that finds someone else's valid lease and wants to tell its caller
// so writes it again, as the paper has it: an answer is given only of what a
// majority knows. Such a write does not prolong what acceptors knew of it, or a
// dead owner's lease would live for as long as others ask.
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
// # Fences
//
// A tenure's fence is higher than those of all before it: one more than the
// highest that a majority knows of, and at least the wall clock's milliseconds.
// So it rises even when all processes have forgotten, if wall clocks are within
// epsilon then.
//
// # Trouble with wall clocks
//
// Where it can be proven that a clock is off by more than epsilon, it is: a jump
// of our own clock against our monotonic one; a message from a peer's future; an
// answer from before the question. Leases are dropped if it is our clock that
// jumped, or that most others differ from. A peer whose clock is off is ignored
// until it is right again.
package flease
