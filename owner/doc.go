// Package owner is the library of a server that holds leases: it joins a
// namespace, keeps its leases renewed, and answers from memory whether this
// process owns a key.
//
//	o, err := owner.Join(ctx, owner.Config{
//		Namespace: "presence",
//		Managers:  []string{"10.0.0.1:7400", "10.0.0.2:7400", "10.0.0.3:7400"},
//		Addr:      "10.0.1.7:8080",
//	})
//	...
//	lease, ok := o.Check(key) // do I own the key?
//	...                       // operate on state stamped with lease.Generation
//	if !o.Held(lease) {       // have I owned it all along?
//		return leasehold.ErrIndeterminate
//	}
//	...
//	err = o.Close(ctx) // gives everything back
//
// # What a server must do
//
// The obligations of a server, in full and with the reasons, are in the
// documentation of package leasehold. In short, for each request:
//
//  1. Check before touching the state of a key; if it fails refuse, with
//     [leasehold.ErrSuspended] if [Owner.Suspended] reports true, and with
//     [leasehold.ErrNotOwner] otherwise.
//  2. Discard state that is stamped with a lower generation than the lease's.
//  3. Stamp what is created or changed with the generation, and send it along
//     as fencing token with every effect outside of the process.
//  4. Call Held with that lease before a result leaves the process; if it
//     fails discard the result: return [leasehold.ErrIndeterminate] if something was
//     changed, because the change may have moved on with the key.
//  5. Run steps 1 to 3 on one key under a lock of the application.
//
// And once for the process:
//
//  6. Use an owner name in one live process only. See [Config.Name].
//  7. Call Close, and let it finish, so that the keys have a new owner at once.
//     The keys of a server that dies without it wait until its leases have run
//     out. Call it first and stop serving afterwards: with a [Mover] the server
//     goes on serving each range until it has gone, with its state, to another.
//
// # Moving state
//
// Without more, the state of a range is lost when the range goes to another
// owner: when one joins or leaves, or to balance the load. An owner with a [Mover]
// hands it over to another that has one. The application writes two functions,
// and the library moves the bytes.
//
//	func (s *server) export(ctx context.Context, out *owner.Export) error {
//		... // out.Send everything in out.Range(), while requests go on
//		if err := out.Stop(); err != nil { // from here on Check fails in the range
//			return err
//		}
//		... // out.Send what has changed since it was sent
//		return nil
//	}
//
//	func (s *server) take(ctx context.Context, in *owner.Import) (func(leasehold.Lease), error) {
//		for record, err := range in.Records() {
//			... // set it aside
//		}
//		return func(lease leasehold.Lease) {
//			... // put it in its place, stamped with lease.Generation
//		}, nil
//	}
//
// The range is served by its owner until Stop and by the next one after install,
// and by no server for the time in between: some round trips, and what the
// application takes to send and install the rest. Callers may receive the address of
// the next owner earlier. [Owner.Await] lets their requests wait for the state.
//
// Until the next owner has confirmed that it has all of the state, any failure
// leaves everything as it was, and the leases with their generations too.
//
// What an application must do, besides the above:
//
//  8. Export only state that is stamped with the generation of the lease, see
//     [Export.Generation]: what is older is from an earlier tenure.
//  9. Read what it exports under the lock that requests hold from Check on (5),
//     and after Stop send everything that has changed since it was sent; what was
//     deleted since has changed, too. A server with little state may call Stop
//     first and send all of it then.
//  10. Keep imported state aside until install is called, and then put in its place
//     what lies in the lease's range, stamped with its generation.
//
// Both functions may be called for several ranges at once. One that fails, panics
// or hangs fails its own move and nothing else; the log has the reason, on both
// sides. Nothing of the library waits for them but Close, as long as its context
// allows.
//
// State travels over gRPC connections between the owners. A target accepts only
// transfers that the leader has announced; source and target prove it with a ticket
// from the leader. See "TLS and access control" below for who can be a target.
//
// At most 64 ranges move to an owner at a time, and as many from it. Each has up
// to 1 MiB under way or, if it has long records, one of them: up to 4 MiB.
//
// # TLS and access control
//
// Without credentials an owner speaks plain text, and only to managers on the loopback
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
// # Outages of the managers
//
// A lease that reaches its deadline without an answer of a leader is suspended: Check and
// Held fail from that moment on, but the lease keeps its
// generation and the application its state. OnRevoke is not called. When a leader answers
// whose table still has the range for this process, the lease is resumed under the same
// generation: no other owner has acted meanwhile, and Held of a lease from before succeeds
// again. If the range was granted to another, the lease ends and OnRevoke is called. So an
// outage of all managers costs availability, from one lease time after its beginning to a
// second or two after its end (after a long one, a lease time later), and no state,
// however long it lasts.
//
// [Config.OnSuspend] and [Config.OnResume] notify the application, [Owner.Status] is for
// readiness probes, and [Owner.Suspended] decides between the answers
// [leasehold.ErrSuspended] and [leasehold.ErrNotOwner]. [Config.KeepSuspended] bounds
// for how long state is kept. A process that was stopped with its computer (below) does not
// keep its leases: its memory may be older than what it has confirmed.
//
// A move that an outage interrupts ends as any that fails: until the target has confirmed,
// the source keeps the range, suspended; after that the target keeps the state until a
// leader has answered.
//
// # Answers for others
//
// A process that answers for others, as "leasehold agent" does for programs in
// other languages, cannot pass on the result of Check: it may be stale when it
// arrives. [Owner.Promise] returns how long it stays valid, and the library keeps that:
// a lease that ends earlier, by a recall or by Close, is granted to another owner only
// when the promise has expired.
//
// # Concurrency and cost
//
// All methods of an [Owner] may be called from many goroutines at once. Check
// and Held take no lock, do not allocate and do no input or output. They cost
// about one and a half times a bare time.Since, 60 ns against 42, whether there
// are few leases or many. The first in 10 microseconds also looks whether the
// computer has slept, which makes it some 100 ns slower.
//
// OnGrant, OnRevoke, OnSuspend and OnResume are called one at a time, in order, on a
// goroutine of their own. A lease ends for Check before OnRevoke is told of it, and nothing
// waits for the callbacks: neither renewals nor the end of a lease. One that is
// slow is told the net result of what happened meanwhile, and the end of every
// lease: also of one that came and went, which Check may have found.
//
// An owner has a goroutine each for its machine, its callbacks and the sleep
// detector, and two for each manager that it talks to. With a Mover it has a few
// more, and some for each range that moves.
//
// # Time
//
// A lease runs on this process's monotonic clock, from the sending of the
// request that the leader answered. If no answer comes, it is suspended at its
// deadline: see above. A
// computer that was suspended finds its leases gone with its first Check,
// although its monotonic clock stood still. What cannot be found out from
// within is a virtual machine that its host stopped with all of its clocks. The fencing
// token protects against that, and against effects that have left the process.
package owner
