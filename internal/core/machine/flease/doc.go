// Package flease is the machine behind package flease of this module: leases that a group of
// processes agrees on, without a lock server and without a disk.
//
// # Design
//
// The algorithm is Flease (Kolbeck et al., "Flease - Lease Coordination without a Lock Server"): a
// round-based register per resource, read and then written with majorities; ballots of time
// interval, message number and process; renewal; crash recovery by waiting. The paper is safe if
// wall clocks never differ by more than epsilon. This implementation is safe if that holds, *or* if
// monotonic clocks differ in rate by no more than the drift bound. One of the two assumptions is
// enough.
//
// # Why two processes never hold a lease at once
//
// A process chooses a lease at a moment when its wall clock shows w and its monotonic clock m. It
// holds the lease once a majority has accepted it, while its clocks show at most w+Lease and less
// than m+Lease. Each acceptor accepted it after that moment.
//
// A commit counts an acceptor only if its promise was considered when the value was chosen, and if
// it has accepted that value in the same incarnation. A proposer that chooses a value considers
// everything that the acceptors report. It takes the lease for itself only if no reported value
// binds: each was released, or has expired on both clocks, or is its own and not held. An acceptor
// accepts a write only in the round that it promised last. So a value that replaces another one at
// an acceptor was chosen by a proposer that had read the replaced value.
//
// Let X and Y be commits for different owners. Their majorities share an acceptor.
//
// Case 1: the same incarnation of the acceptor took part in both. It accepted one of them first,
// say X. Everything that it stored after that, up to Y, was chosen by proposers that had read the
// value stored before. So one of them read X, or a later renewal or an earlier value of the same
// owner, and replaced it by a value of another owner. It did so because it read a release; or
// because two conditions were met. The wall clock was past the value's end by more than epsilon,
// which proves by the first assumption that the owner has stopped. And the acceptor's own deadline,
// Lease times the drift bound after acceptance, had passed, which proves it by the second. The
// owner may have been renewing in its earlier round at that time. This acceptor, which has promised
// a later round, rejects that renewal; and the renewal needs a majority, which intersects the later
// round's majority.
//
// Case 2: it was not the same incarnation. Then the acceptor lost its memory in between, and was
// silent until its clocks had advanced by Lease times the drift bound, and by more than Lease and
// twice epsilon. Again each proves by one of the assumptions that every value that it had accepted
// has expired. Its lost promises are harmless: a write is accepted only in a round that this
// incarnation promised, and is void if it is addressed to another one.
//
// In the paper a proposer considers only the value of the highest ballot. This is not sufficient
// with acceptors that lose promises: one of them may accept a lease in a round below one that it
// has promised, and another may still report an expired value of that higher round. The simulator
// found this case.
//
// # Queries do not disturb the owner
//
// In the paper every query is a read that voids the round in which the owner renews: members that
// query often enough take the lease away from a healthy owner. Here an acceptor with a lease in
// force makes promises only to its owner. It reports the owner to others instead. Not promising is
// always safe.
//
// A query is answered only if a majority reports the same tenure, with promises or in their place.
// Then the caller gets the answer at once, with the earliest reported end. The answer is true: all
// of them had accepted that tenure when they reported it, after the query. Any process that takes
// the lease later reads from one of them, and finds the tenure binding until that end. Had another
// process taken the lease before, one of them would have accepted that value. It could only have
// returned to the earlier tenure by a proposer that had not read the later one, which majorities
// exclude. If too few members have the tenure, the next round insists on promises, and the proposer
// writes the lease again, as in the paper. Such a write does not extend the acceptors' deadlines;
// otherwise queries would keep a dead owner's lease in force.
//
// A waiting process is woken by the release, which goes to all members that have the lease. So the
// owner makes sure that all have it: if a member has rejected a renewal, or has promised the round
// too late, the next renewal takes a whole round, with a ballot well above those of other queries
// there. Until then a waiting process that does not have the lease as an acceptor queries
// periodically.
//
// A renewal is a write in the owner's existing round, with a higher serial number. It needs no
// read: if another process had begun a later round that could commit, a majority would reject the
// write. So it costs one round trip. If it is rejected, or not answered, a whole round follows.
//
// A release is a write of the same kind, sent after the owner has stopped using the lease. It is
// never undone by earlier messages.
//
// Acceptors drop resources that have expired and are not requested. Two numbers remain: the highest
// ballot promised, and the highest fence seen. A promise about an unknown resource is never made at
// or below the first. So dropping a resource is not a loss of memory.
//
// # Names and refs
//
// Only a read contains the name of its resource. All other messages refer to the receiver's state
// by a ref, which the receiver has assigned: an acceptor in its promise, a proposer in its request.
// A ref may have been reused for another resource. But an acceptor stores a value only where it has
// promised this ballot to this incarnation, and a proposer counts a reply only for a bid with this
// ballot. And no process uses a ballot for two resources, since each is higher than all that it has
// used before. So a stored or counted value is always of the right resource.
//
// # Fences
//
// A tenure's fence is higher than all earlier ones: one more than the highest that a majority has,
// and at least the wall clock's milliseconds.
//
// It increases even when all processes have lost their memory, if wall clocks are within epsilon of
// each other. Reason: no claim is made whose fence is ahead of the proposer's clock by more than
// epsilon; if tenures follow each other so fast, the proposer waits. So no fence is ever ahead of
// any clock by more than twice epsilon. A process that has lost its memory is silent for longer
// than that, and its next fence is at least its clock.
//
// By the same argument a fence that is ahead by more than twice epsilon was made with a wrong
// clock. No process waits until clocks reach it, which might take years. The next one is still
// higher, unless all processes lose their memory before. If all have lost it, a process that has a
// record of a fence can request a higher one: [Machine.Raise].
//
// # Cost
//
// A lease among three processes takes three lookups by name, one in each process, for the read.
// Names of new resources are not in the processor's caches, so lookups dominate the cost; they are
// done in parallel, see [Machine.Expect]. A resource or a bid is not allocated if a dropped one can
// be reused, except for its name.
//
// # Twins
//
// All of this assumes that an id is one process. Two processes with the same id (twins) are
// detected, and one of them gives way: see twin.go. Until then leases are not safe, since the twins
// do not share accepted values; so detection happens while the second one waits.
//
// # Wall clock errors
//
// A clock error is detected if it is provable that a clock is off by more than epsilon: a step of
// the local wall clock against the monotonic clock; a message from the future; a reply from before
// its request. Leases are dropped if the local clock was stepped, or differs from most others. A
// peer whose clock is off is ignored until it is right again.
//
// # Snapshots of virtual machines
//
// A virtual machine may be restored from a snapshot, or migrated by one. Then its processes have
// lost what they promised and accepted after the snapshot. Their monotonic clocks continue from the
// snapshot; so if the wall clock is corrected, it steps forward. This cannot be distinguished from
// other steps, nor from a suspension. In all these cases a process drops its state, takes a new
// incarnation, and with it a new key for its packets, and is silent as after a start. The cost is a
// recovery after a clock was behind, or after a sleep.
//
// Not detected: a snapshot that is not older than epsilon, or one after which the wall clock is not
// corrected, as with tools that restore processes together with their view of time. Such a process
// must be stopped and restarted.
package flease
