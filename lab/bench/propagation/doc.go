// Command propagation asks how long a change of the lease table takes to reach
// the last of many lookups, beside etcd's watch with as many watchers and bytes,
// and beside a bare gRPC server that pushes as many bytes, written as one would.
//
//	cd lab/bench && go run ./propagation          all of it, in minutes
//	cd lab/bench && go run ./propagation -quick   1,000 of each, in seconds
//
// Servers are processes of their own, and so are their listeners. All listeners are
// the same code, for every server; see [Listeners].
package main
