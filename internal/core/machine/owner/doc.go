// Package owner is the machine of the owner library: it holds leases, keeps
// them renewed, and lets go of them in time.
//
// # DESIGN
//
// Every reply of the leader names the complete set of leases that the owner is
// to have, and all of them count from the sending of the one request that the
// reply echoes. So there is one set and one deadline, and a [View] is just
// that. Checking a lease is a search in the set and a comparison with the
// deadline; it needs no machine, and the shell does it without a lock.
//
// What the machine must never do:
//
//   - let a lease live past its deadline. It runs from the *sending* of the
//     request, so that the owner's time ends before the leader's, whose time
//     starts when the request arrives (Centrifuge 2.3.1).
//   - let a lease come back. Once dropped for whatever reason, a generation is
//     never installed again: renewals extend only what is held, and a fresh
//     offer must be newer than anything that was ever installed. That is what
//     Held relies on.
//   - say that it does not have a lease while a check could still succeed. The
//     action that publishes the smaller view comes before the one that sends.
//   - say so while somebody relies on an answer that has left the process, if
//     such answers are given: see [Settle]. A message that is held back is not
//     stamped before it is sent, so that it costs some of the time of the leases
//     that go on, and nothing else.
//   - believe a leader of an older term, or a message that crossed its own.
package owner
