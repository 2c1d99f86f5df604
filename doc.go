// Package leasehold is the vocabulary of a lease manager that is also the
// partitioner, and the operating manual of the system.
//
// Leasehold gives every key of an in-memory service to at most one server at a
// time, tells callers where that server is, and tells them which keys lost
// their state when a server died. It follows Centrifuge (Adya, Dunagan and
// Wolman, NSDI 2010). This package has the words and no machinery.
//
// A server links package owner, a caller package lookup, and both speak to the
// managers, which the leasehold command runs. The calls named Check, Held, Find
// and Losses below are those of the two packages.
//
// # Words
//
//   - A [Key] is a point in a space of 64 bits; [KeyOf] hashes a name to one. A
//     [Range] is a run of keys, and what leases are granted on.
//   - A [Namespace] is one pool of servers with one key space and one lease
//     table.
//   - An owner is a server that holds leases. Its [OwnerID] is its name, the
//     same across restarts; its [Session] is one run of its process.
//   - A [Lease] is the right of one owner to a range, for a time that both sides
//     measure. Its [Generation] names the grant. Generations strictly rise and
//     are never reused, so a generation is also the fencing token.
//   - The manager grants leases and keeps the lease table, whose changes the
//     [LSN] numbers. One manager leads at a time, in its [Term]; the others
//     stand by. No manager is on the path of a request.
//   - A lookup is a caller's copy of the lease table. It answers where a key is,
//     and reports each [Loss]: a range whose state is gone.
//
// # What a server must do
//
// A lease says who may act on a key; only the server can see to it that it acts
// within the lease. For every request these are its obligations, in this order.
// The first four are the steps of Centrifuge's figure 10.
//
//  1. Check. Before it touches the state of a key it calls Check, which answers
//     whether this process holds a lease on the key now, and which. If not, it
//     refuses the request with [ErrNotOwner] and the caller looks again; or with
//     [ErrSuspended], if it has a lease that no manager has renewed in time, and the
//     caller waits and asks it again. No call asks for a lease: the manager decides
//     who owns what.
//
//  2. Validate. It compares the lease's generation with the one stored beside
//     the state of the key. If they are equal, the state reflects every
//     operation on that key. If the stored one is lower, the state is from an
//     earlier tenure, others may have acted since, and it is discarded and
//     built anew (empty, from a store, or by the callers, who have been told of
//     the loss) before anything reads it. A stored one that is higher means
//     that the request itself is late: it is refused.
//
//  3. Operate, and store the lease's generation beside whatever was created or
//     changed, in the same step. Whatever has an effect outside of the process,
//     a write to a store or a request to another service, carries the
//     generation as its fencing token.
//
//  4. Held. Before a result leaves the process it calls Held with the lease of
//     step 1, which answers whether that lease was held without a gap since. If
//     not, the result is worth nothing. A request that has only read is refused
//     with [ErrNotOwner]. One that has changed something answers [ErrIndeterminate]: if
//     the state was moved to another owner just before, the change may have gone
//     with it. It need not clean up; step 2 of a later request discards what this
//     one left behind.
//
//  5. Keep its own goroutines apart. A lease excludes other processes, not other
//     goroutines of this one: steps 1 to 3 on one key run under a lock of the
//     application. Step 1 too, for a request that waits for the lock with a
//     lease in its hand may get the lock in the next tenure.
//
//  6. Keep its names honest. An OwnerID belongs to one live process of its
//     namespace. A Session is drawn anew at every start of the process and is
//     neither stored nor copied: a session that two processes share makes them
//     one owner in the manager's eyes.
//
// In code, with o the Owner of package owner:
//
//	s.mu.Lock() // 5
//	defer s.mu.Unlock()
//	lease, ok := o.Check(key) // 1
//	list := s.lists[key]
//	if !ok || list.generation > lease.Generation {
//		return leasehold.ErrNotOwner
//	}
//	if list.generation < lease.Generation { // 2
//		list = subscriptions{}
//	}
//	list.add(address) // 3
//	list.generation = lease.Generation
//	s.lists[key] = list
//	if !o.Held(lease) { // 4
//		return leasehold.ErrIndeterminate
//	}
//	return nil
//
// Step 4 speaks of the past. A lease that was held when Held looked may end
// before the answer arrives; what it guarantees is that the operation happened
// while nobody else could act.
//
// # What a caller must do
//
//  7. Take an address for a hint. A lookup may be behind, and the server finds
//     that out at step 1. On [ErrNotOwner], [ErrNoOwner] or [ErrSuspended] look up again,
//     after a backoff.
//
//  8. Expect to repeat itself. A request that failed with [ErrIndeterminate] may have
//     been carried out; one that was refused with [ErrNotOwner] or [ErrSuspended] has not. Make requests
//     idempotent, or number them.
//
//  9. Recreate what is lost, if it is the one who can. A Loss may be reported
//     more than once. A Loss is an invitation, never a proof that nothing is left.
//     While a lookup has no contact with the managers, losses may be missing:
//     wait, and do not recreate anything for that. They are reported when contact
//     is restored.
//
// # What is assumed of clocks
//
// Only that their rates differ by less than the drift bound, 1.20 unless the
// namespace says otherwise: while one process's clock advances by d, no other's
// advances by 1.20 d or more. Clocks need not agree on the time, wall-clock time
// decides nothing, and it may be stepped by an hour without consequence.
//
// The reason is short. For a lease time D, the owner's lease ends D after it
// sent the message that the manager answered, on the owner's clock. The manager
// keeps the range from everybody else for D times the drift bound after it
// accepted that message, on its own clock. A message is accepted after it was
// sent, and the manager's clock is not faster than the owner's by more than the
// bound: so the owner has stopped before another can start. That asks nothing of
// how long messages take, or of whether they arrive.
//
// What a lease cannot see is a pause: a process that is stopped, swapped out or
// suspended between Check and the effect of step 3 acts late without knowing.
// Held finds that out for whatever passes through step 4, as long as the clock
// went on during the pause; a clock that stops with its machine is beyond the
// drift bound. An effect that has already left the process is beyond recall.
// For both there is fencing.
//
// # Outages of the managers
//
// While no manager that leads can be reached, every server goes on until its leases
// have reached their deadline. Then they are suspended: no check succeeds, and leases and
// state are kept. A leader that returns renews, under the same generations, what its table
// still has for the same processes. So an outage costs availability and never state, however
// long it lasts: what is lost is what was granted to another server, or what a process held
// that has ended.
//
// # Fencing
//
// A store or service that receives effects from owners remembers, per key, the
// highest generation that it has accepted, and refuses lower ones with [ErrStale].
// It does so in the same transaction as the effect. Equal generations are
// accepted: they come from one tenure of one owner. With that, an owner that
// acts late, whatever became of its clock, cannot undo what its successor did.
// A successor should therefore write once, if only its generation, before it
// reads state that it relies on: until then the store does not know of it.
//
// # Errors
//
// The packages return an [Error]: an operation, a kind, a subject and a cause. The kind is
// one of the sentinel errors of this package and says what the caller can do. Compare with
// errors.Is(err, leasehold.ErrNotOwner); that works for errors that arrived over the network,
// too. [ErrIndeterminate] says that an operation may have been executed.
package leasehold
