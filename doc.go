// Package leasehold is the vocabulary of Leasehold, a lease manager that is also the
// partitioner. It documents the obligations of servers and callers, and contains no
// mechanism.
//
// Leasehold grants each key of an in-memory service to at most one server at a time.
// Callers receive the lease table, which names the server of each key, and the losses:
// the ranges whose state is gone because a server crashed. It implements Centrifuge
// (Adya, Dunagan and Wolman, NSDI 2010).
//
// A server links package owner, a caller package lookup, and both connect to the
// managers, which the leasehold command runs. The functions named Check, Held, Find
// and Losses below are methods of the two packages.
//
// # Terms
//
//   - A [Key] is a point in a 64-bit key space; [KeyOf] hashes a name to a key. A
//     [Range] is a contiguous set of keys. Leases are granted on ranges.
//   - A [Namespace] is one pool of servers with one key space and one lease
//     table.
//   - An owner is a server that holds leases. Its [OwnerID] is stable across
//     restarts; its [Session] identifies one run of its process.
//   - A [Lease] is the right of one owner to a range, for a time that owner and manager
//     measure. Its [Generation] identifies the grant. Generations strictly increase and
//     are never reused, so a generation is also the fencing token.
//   - The managers grant leases and store the lease table; an [LSN] numbers its
//     changes. One manager is the leader, in its [Term]; the others are
//     standbys. No manager is on the path of a request.
//   - A lookup is a caller's copy of the lease table. It finds the server of a key,
//     and reports each [Loss]: a range whose state is gone.
//
// # Obligations of a server
//
// A lease names the owner of a key. Only the server can ensure that it acts
// within the lease. These are its obligations for every request, in this order.
// The first four are the steps of Centrifuge's figure 10.
//
//  1. Check. Before the server accesses the state of a key it calls Check, which returns
//     the lease that this process holds on the key at this instant, if any. Without a
//     lease it refuses the request with [ErrNotOwner], and the caller looks the key up
//     again. If the lease is suspended, because no manager has renewed it in time, it
//     refuses with [ErrSuspended], and the caller retries at the same server after a
//     backoff. No call requests a lease: the managers assign ranges.
//
//  2. Validate. It compares the lease's generation with the generation stored with
//     the state of the key. If they are equal, the state reflects every
//     operation on that key. If the stored one is lower, the state is from an
//     earlier tenure, and another owner may have acted since: the server discards the
//     state and rebuilds it before it is read (empty, from a store, or by the callers,
//     which have received the loss). If the stored one is higher, the request itself is
//     stale and is refused.
//
//  3. Operate, and store the lease's generation with the created or changed state, in the
//     same step. An effect outside of the process, such as a write to a store or a request
//     to another service, carries the generation as its fencing token.
//
//  4. Held. Before a result leaves the process the server calls Held with the lease of
//     step 1, which reports whether that lease was held without a gap since. If
//     not, the result is invalid. A request that has only read is refused
//     with [ErrNotOwner]. A request that has changed state returns [ErrIndeterminate]: if
//     the state was moved to another owner just before, the move may include the change.
//     No cleanup is necessary: step 2 of a later request discards the change.
//
//  5. Lock. A lease excludes other processes, not other goroutines of this process:
//     steps 1 to 3 on one key run under a lock of the application. Step 1 is included,
//     because a request that calls Check and then waits for the lock may get the lock in a
//     later tenure.
//
//  6. Unique names. An OwnerID belongs to one live process of its
//     namespace. A Session is random, new at every start of the process, and
//     neither stored nor copied: two processes with the same session are one owner to the
//     manager.
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
// Held is about the past. The lease may end between Held and the arrival of the response;
// the guarantee is that no other owner could act while the operation ran.
//
// # Obligations of a caller
//
//  7. Treat an address as a hint. The table of a lookup may be stale; the server detects
//     this in step 1. On [ErrNotOwner], [ErrNoOwner] or [ErrSuspended] look the key up again,
//     after a backoff.
//
//  8. Expect retries. A request that failed with [ErrIndeterminate] may have
//     been executed; a request that was refused with [ErrNotOwner] or [ErrSuspended] was not. Make requests
//     idempotent, or give them sequence numbers.
//
//  9. Recreate lost state, if this caller can. A Loss may be reported
//     more than once, and does not prove that no state is left.
//     While a lookup has no contact with the managers, losses may be missing:
//     wait, and do not recreate state because of the lost contact. The losses are reported
//     when contact is restored.
//
// # Clock assumption
//
// Clock rates differ by less than the drift bound, 1.20 by default: while the clock of one
// process advances by d, no other clock advances by 1.20 d or more. Clocks may show
// different times. Safety does not depend on wall-clock time: a step of the wall clock by
// an hour has no effect.
//
// Why this suffices: the owner's lease of duration D ends D after the owner
// sent the request that the manager's reply echoes, on the owner's clock. The manager
// keeps the range from other owners for D times the drift bound after it
// accepted that request, on its own clock. A request is accepted after it was
// sent, and the manager's clock is faster than the owner's by less than the
// bound: so the owner's lease ends before another begins. The delay of messages does not
// matter, and neither does their loss.
//
// A lease does not detect a pause: a process that is stopped, swapped out or
// suspended between Check and the effect of step 3 acts late.
// Held detects it for every result that passes step 4, provided that the clock
// advances during the pause; a clock that stops with its computer exceeds the
// drift bound. An effect that has already left the process cannot be recalled.
// Both cases need fencing.
//
// # Manager outages
//
// While no leader is reachable, every server continues until the deadline of its leases.
// Then the leases are suspended: checks fail, and the server keeps leases and
// state. A new leader renews, under the same generations, the leases that its table
// still assigns to the same sessions. So an outage of any length costs availability and no
// state. State is lost only if its range was granted to another server, or if the process
// that held it has ended.
//
// # Fencing
//
// A store or service that receives effects from owners stores, per key, the
// highest generation that it has accepted, and refuses lower ones with [ErrStale].
// It does so in the same transaction as the effect. Equal generations are
// accepted: they come from one tenure of one owner. So an owner that
// acts late, even with a broken clock, cannot overwrite the effects of its successor.
// A successor should therefore write once, if only its generation, before it
// reads state that it relies on: until then the store accepts the older generation.
//
// # Errors
//
// The packages return an [Error]: an operation, a kind, a subject and a cause. The kind is
// one of the sentinel errors of this package and determines what the caller can do. Compare with
// errors.Is(err, leasehold.ErrNotOwner); that works for errors that arrived over the network,
// too. [ErrIndeterminate] means that an operation may have been executed.
package leasehold
