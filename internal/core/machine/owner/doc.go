// Package owner is the state machine of the owner library: it holds leases, renews
// them, and stops serving them at their deadline.
//
// # DESIGN
//
// Every reply of the leader contains the complete set of leases of the owner, and their
// duration counts from the sending of the request that the reply echoes. So there is
// one set with one deadline: the [View]. A check searches the set and compares the
// deadline with the clock; it needs no machine, and the shell does it without a lock.
//
// The machine ensures:
//
//   - No lease is valid after its deadline. The deadline counts from the *sending* of
//     the request, so it passes before the leader expires the lease, whose time
//     counts from the arrival of the request (Centrifuge 2.3.1).
//   - No dropped lease returns. A dropped generation is never installed again:
//     renewals extend only held leases, and the generation of a grant must be higher
//     than all that were installed before. [View.Held] relies on this.
//   - No request omits a lease while a check of it could still succeed. The action that
//     publishes the smaller view precedes the action that sends the request.
//   - No request omits a lease while another process relies on a promise about it: see
//     [Settle]. A delayed request gets its time when it is sent, so the delay only
//     shortens the remaining time of the other leases.
//   - No reply of an older term is accepted, and none that crossed a request.
package owner
