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
// Pick selects the connection when the call is sent: the key and the address of its owner are in the context,
// and an immutable map has the connection. That takes no lock and does not allocate. A call that waits for a
// connection or for a newer table waits for the next picker, which selects again.
//
// A call without owner or connection, above the limit of outstanding calls, or whose key has another owner now
// than its context, fails at once with [NotSent]. The caller of the policy decides about retries. So an attempt
// is sent to the address that its caller knows, and a call that waits for a server that does not respond follows
// its key when that moves.
//
// gRPC calls a policy from one goroutine, and pickers from many. So the policy has no lock, and its state
// shared with pickers is atomic.
package keybalancer
