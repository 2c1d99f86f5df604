// Package manager runs one manager of a group. Managers grant leases, keep the lease table in a
// store, and send it to lookups.
//
//	m, err := manager.Start(manager.Config{Store: s, Listener: l})
//	...
//	<-m.Done() // m.Err returns the reason
//	...
//	err = m.Close(ctx) // hands over leadership
//
// A group is any number of managers that share a store ([Config.Store]: package
// server/store/etcd, embedded or external), or three to nine without a disk ([Config.Peers]).
// One manager leads. The others are standbys: they serve lookups, forward requests to the leader,
// and take over when the leader fails. The leasehold command runs managers. Use this package for
// a manager inside another process, or with the application's own partitioning policy.
//
// # Design
//
// The machine in internal/core/machine/managerproc makes all decisions, on one goroutine. This
// package executes them: it turns messages into events and actions into messages, and
// calls the store. Code here must not measure the validity of leases or assign ranges.
//
//   - Messages to owners and lookups go through internal/runtime/broadcast: bounded
//     queues, one sender per stream, and broadcasts in waves to thousands of lookups.
//   - Package access authorizes calls, if Config.Access is set, before a handler runs. Handlers
//     hide other namespaces from the caller, and add the caller's identity to requests that they
//     forward.
//   - Each request to the store has a goroutine and a deadline. The machine limits the requests
//     in flight, and receives the outcome of each.
package manager
