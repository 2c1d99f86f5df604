// Package keybalancer is a gRPC load balancing policy that sends each call to the owner of its key. gRPC's
// API for policies is experimental. The package isolates it from package leasegrpc.
//
// # Design
//
// A resolver passes a [Table] to the policy with [State], and again after each change of the table. The
// policy has one connection per address in the table, which is established by the first call: a caller of a
// thousand servers may use ten. A connection whose address is removed accepts no new calls, and is closed
// after its last one.
//
// Pick selects the server when the call is sent: the key is in the context, the table has the address, and
// an immutable map the connection. That takes no lock and does not allocate. A call that waits for a
// connection or for a newer table waits for the next picker, which selects again. So a call to a server
// that does not respond follows its key when that moves.
//
// A call without owner or connection, or above the limit of outstanding calls, fails at once with
// [NotSent]. The caller of the policy decides about retries.
//
// gRPC calls a policy from one goroutine, and pickers from many. So the policy has no lock, and its state
// shared with pickers is atomic.
package keybalancer
