// Package manager runs one manager of a group: the process that grants leases,
// keeps the lease table in a store, and sends it to owners and lookups.
//
//	m, err := manager.Start(manager.Config{Store: s, Listener: l})
//	...
//	<-m.Done() // it has ended: m.Err says why
//	...
//	err = m.Close(ctx) // hands leadership over
//
// A group is any number of managers that share a store ([Config.Store]: package
// server/store/etcd, embedded or a cluster), or that agree without a store ([Config.Peers]).
// One manager leads; the others stand by, serve lookups, forward requests to the leader, and
// take over when the leader dies. The leasehold command runs managers; this package is for
// a manager inside another process, or with a partitioning policy of the application.
//
// # How it is built
//
// The machine in internal/core/machine/managerproc makes all decisions, on one goroutine. This
// package executes them: it turns messages into events and actions into messages, and
// calls the store. Nothing here judges time or decides who holds what.
//
//   - What is sent to owners and lookups goes through internal/runtime/broadcast: bounded
//     queues, one sender per stream, and waves for thousands of lookups.
//   - Who may call what is decided by package access, if there is a Config.Access,
//     before a handler sees a message. Handlers show each caller only its namespaces,
//     and add the caller's identity to requests that they forward.
//   - Each request to the store has a goroutine and a deadline. The machine
//     has few in flight at a time, and gets the outcome of each.
package manager
