// Package owner is the library of a server that holds leases: it joins a
// namespace, renews its leases, and checks in memory whether this
// process owns a key.
//
//	o, err := owner.Join(ctx, owner.Config{
//		Namespace: "presence",
//		Managers:  []string{"10.0.0.1:7400", "10.0.0.2:7400", "10.0.0.3:7400"},
//		Addr:      "10.0.1.7:8080",
//	})
//	...
//	lease, ok := o.Check(key) // does this process own the key?
//	...                       // operate on state stamped with lease.Generation
//	if !o.Held(lease) {       // did it own the key without a gap?
//		return leasehold.ErrIndeterminate
//	}
//	...
//	err = o.Close(ctx) // releases all leases
//
// # Obligations of a server
//
// The obligations of a server, in full and with the reasons, are in the
// documentation of package leasehold. In short, for each request:
//
//  1. Check before accessing the state of a key; if it fails, refuse with
//     [leasehold.ErrSuspended] if [Owner.Suspended] reports true, and with
//     [leasehold.ErrNotOwner] otherwise.
//  2. Discard state that is stamped with a lower generation than the lease's.
//  3. Stamp created or changed state with the generation, and send it
//     as fencing token with every effect outside of the process.
//  4. Call Held with that lease before a result leaves the process. If it
//     fails, discard the result; if state was changed, return
//     [leasehold.ErrIndeterminate], because the change may have moved with the key.
//  5. Run steps 1 to 3 on one key under a lock of the application.
//
// And once for the process:
//
//  6. Use an owner name in one live process only. See [Config.Name].
//  7. Call Close and wait until it returns, so that the keys get a new owner at once.
//     Otherwise the keys have no owner until the leases expire. Call it before the server
//     stops serving: with a [Mover] the server
//     serves each range until it has moved, with its state, to another owner.
//
// # Moving state
//
// Without a Mover the state of a range is lost when the range is granted to another
// owner: after a join or leave, or to balance the load. An owner with a [Mover]
// transfers it to another owner with one. The application implements two functions,
// and the library transfers the bytes.
//
//	func (s *server) export(ctx context.Context, out *owner.Export) error {
//		... // out.Send all state in out.Range(), while the server accepts requests
//		if err := out.Stop(); err != nil { // after this Check fails in the range
//			return err
//		}
//		... // out.Send the changes since
//		return nil
//	}
//
//	func (s *server) take(ctx context.Context, in *owner.Import) (func(leasehold.Lease), error) {
//		for record, err := range in.Records() {
//			... // keep the record aside
//		}
//		return func(lease leasehold.Lease) {
//			... // install the records, stamped with lease.Generation
//		}, nil
//	}
//
// The source serves the range until Stop, and the target serves it after install.
// In between no server does: some round trips, and the time of the
// application to send and install the last changes. Meanwhile the leases of the source are kept
// but not served: OnSuspend is called, then OnRevoke or, if the move fails, OnResume. Callers may receive the address of
// the target earlier. [Owner.Await] makes their requests wait for the state.
//
// Until the target has confirmed that it has all of the state, any failure
// cancels the move, and the source keeps its leases with their generations.
//
// Additional obligations of the application:
//
//  8. Export only state that is stamped with the generation of the lease, see
//     [Export.Generation]: older state is from an earlier tenure.
//  9. Read the exported state under the lock that requests hold from Check on (5),
//     and after Stop send all changes since it was sent, including deletions.
//     A server with little state may call Stop
//     first and then send all of it.
//  10. Keep imported state aside until install is called. Then install
//     the part in the lease's range, stamped with its generation.
//
// Both functions may be called for several ranges concurrently. A function that fails, panics
// or hangs fails only its own move; source and target log the reason. The library does
// not wait for them, except in Close, as long as its context
// allows.
//
// State travels over gRPC connections between the owners. A target accepts only
// transfers that the leader has announced; source and target authenticate it with a ticket
// from the leader. See "TLS and access control" below for who can be a target.
//
// At most 64 ranges move to an owner concurrently, and as many from it. Each has up
// to 1 MiB in flight or, with long records, one record: up to 4 MiB.
//
// # Work without requests
//
// [Each] runs a function for each range that this process holds, and ends it before the range
// moves: a consumer of a partitioned queue, for instance.
//
// # TLS and access control
//
// Without credentials an owner connects in plaintext, and only to managers on the loopback
// interface. With [Config.Credentials] of package secure, owner and managers authenticate
// each other by certificates (mutual TLS), and the managers' access file decides which
// identity may join which namespace under which name: see package access. Join
// fails with [leasehold.ErrDenied] if it does not permit that. Managers without an access file
// accept every owner that can connect, and grant it leases.
//
// [Mover.Credentials] and [Mover.ServerCredentials] secure the connections between owners.
// They are required if Config.Credentials is set. If the managers authenticate owners, each
// side of a transfer also checks that the other has the identity that the leader has
// accepted.
//
// # Manager outages
//
// A lease that reaches its deadline without a reply of a leader is suspended: Check and
// Held fail, the lease keeps its generation, and the application keeps its state.
// OnRevoke is not called. When a leader replies
// whose table still assigns the range to this session, the lease resumes under the same
// generation: no other owner has acted meanwhile, and Held of an earlier lease succeeds
// again. If the range was granted to another owner, the lease ends and OnRevoke is called. So an
// outage of all managers, of any length, costs availability and no state. Checks fail from
// one lease time after its start to a
// second or two after its end (after a long one, a lease time later).
//
// [Config.OnSuspend] and [Config.OnResume] notify the application, [Owner.Status] is for
// readiness probes, and [Owner.Suspended] selects between the errors
// [leasehold.ErrSuspended] and [leasehold.ErrNotOwner]. [Config.KeepSuspended] limits
// how long state is kept. After a suspension of the computer (below) a process does not
// keep its leases: its memory may be older than the state that it has confirmed.
//
// An outage fails the moves in progress: until the target has confirmed,
// the source keeps the range, suspended; after that the target keeps the state until a
// leader replies.
//
// # Promises
//
// A process that checks keys for other processes, as "leasehold agent" does for programs in
// other languages, cannot forward the result of Check: it may be stale on
// arrival. [Owner.Promise] returns how long its result remains valid. The library enforces that:
// a lease that ends earlier, by a recall or by Close, is granted to another owner only
// after the promise has expired.
//
// # Concurrency and cost
//
// An [Owner] is safe for concurrent use. Check
// and Held take no lock, do not allocate and do no I/O. They cost
// about one and a half times a time.Since, 60 ns against 42, for any number
// of leases. Every 10 microseconds one of them also checks for a suspension of the
// computer, which adds about 100 ns.
//
// OnGrant, OnRevoke, OnSuspend and OnResume are called one at a time, in order, on a
// separate goroutine. A lease ends for Check before OnRevoke is called, and neither
// renewals nor the end of a lease wait for the callbacks. A slow callback
// receives the net change since its last call, and the end of every
// lease, including a lease that was granted and ended meanwhile, because Check may have
// returned it.
//
// An owner has one goroutine each for its machine, its callbacks and the sleep
// detector, and two for each connected manager. With a Mover it has a few
// more, and some for each range that moves.
//
// # Time
//
// A lease is measured on this process's monotonic clock, from the sending of the
// request that the leader's reply echoes. Without a reply it is suspended at its
// deadline: see above. After the computer was suspended, the first Check detects it and
// ends all leases, although the monotonic clock stood still. A guest cannot detect that its
// host has stopped a virtual machine with all of its clocks. The fencing
// token protects against that, and against effects that have left the process.
package owner
