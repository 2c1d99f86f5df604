// Package keybalancer is a load balancing policy of gRPC that sends each call to
// the server that owns its key. The API that it implements is experimental, which
// is why it is here and not in package leasegrpc: a new version of gRPC changes
// this package, and no other.
//
// # DESIGN
//
// A resolver hands over a [Table], with [State], and again whenever the table has
// changed. The policy has one connection for each address in it, which is not made
// before the first call needs it: a caller of a thousand servers may talk to ten.
// A connection whose address has gone takes no more calls, and ends with the last
// that it has.
//
// A call finds its server when it is sent, in Pick: the key is in its context, the
// table says the address, and a map that is never changed has the connection. That
// takes no lock and does not allocate. Whatever a call waits for, a connection or a
// table that this package has not seen yet, ends with another picker; then it looks
// again, so that one that waits for a server that does not answer follows its key
// when the key has moved.
//
// A call that finds no owner, or no connection, or too many others under way, is not
// kept waiting here, but told so with a [NotSent]: how long to try is decided above.
//
// gRPC calls a policy from one goroutine, and pickers from many. So a Balancer has no
// lock, and what it shares with its pickers is atomic.
package keybalancer
