// Package cluster runs the managers inside the servers of a service: three servers that import it are a
// cluster, without a disk, etcd or another process.
//
//	var state leasemap.Group
//	statuses := leasemap.Add(&state, "", leasemap.Config[string]{})
//	c, err := cluster.Join(ctx, cluster.Config{
//		Namespace: "presence",
//		Self:      "10.0.1.7:7400",
//		Peers:     cluster.List("10.0.1.7:7400", "10.0.1.8:7400", "10.0.1.9:7400"),
//		State:     &state,
//	})
//	...
//	err = c.Close(ctx) // moves the keys to the other servers
//
// Each process is an owner and has a lookup. The first nine are also managers of a diskless group (see
// package manager), and elect a leader among themselves. All of it uses one port number: gRPC for
// managers, lookups and the commands ("leasehold top --managers 10.0.1.7:7400"), the transfer of state
// between servers, optionally the application's HTTP, and UDP datagrams for elections. gRPC of the
// application needs a port of its own, since it has other limits, interceptors and access rules: set
// Config.Addr.
//
// # Guarantees
//
// Those of a separate diskless group: each key has at most one owner, and a caller learns which keys
// have lost their state.
//
//   - A rolling restart loses nothing: each server moves its keys before it stops. Stop the next server
//     when Join has returned in the restarted one.
//   - The crash of a server loses the state of its keys, and nothing else. Their ranges are granted to
//     other servers when the leases have expired, or at once under "leasehold run". A server that
//     restarts with the same Self gets them back, without state.
//   - If the crashed server led, another one leads within about 1.2 TTL and a round trip. Requests for
//     keys of other servers are served meanwhile, since leases are longer.
//   - While fewer than a majority of the managers runs, servers serve until their leases reach the
//     deadline. Then their keys are suspended and keep their values, until a majority is back.
//   - If a majority of the managers restarts at the same time, all state is lost, also that of servers
//     that kept running: no manager can prove that their keys had no other owner. The namespace is
//     created again from Settings, so changes of operators are lost too. No leases are granted until
//     all leases from before have expired: Longest, counted from the election.
//
// # Names
//
// The managers are elected by majorities of a fixed set of names, so all processes must agree on the
// set: two different sets could elect two leaders. Peers must return the same names in all processes and
// at all times: a fixed list, or DNS records that name the same hosts even while these are down. Names
// may be host names with changing addresses, like those of a StatefulSet. Managers with another set do
// not take part, and log that. An address that is taken from a pool, like that of a pod, is not a fixed
// name. To replace a name, stop all servers.
//
// In Kubernetes, the pods of a StatefulSet must start in parallel (podManagementPolicy: Parallel), and
// the port must be open for TCP and UDP.
//
// With at most nine names all processes are managers. With more, the first nine are, in the order of
// length and then of characters: presence-0 to presence-8 of a StatefulSet.
//
// # New clusters
//
// A new group cannot know whether it is new. Owners of an earlier group, which may have had other names
// and may be paused, may hold leases. So the leader waits for Longest after its election before it grants
// any: 12 s by default. A restart of single servers does not wait.
//
// With shorter leases a new cluster starts sooner, and a crash is noticed sooner. In return servers renew
// their leases more often, and a shorter pause suspends their keys. Settings with a Lease of 2 s require a
// Longest of 2.4 s.
//
// # When to run managers apart
//
// Use separate managers ("leasehold manager run") if several services share them, for thousands of
// lookups, for owners that are not members or not in Go, if the lease table must survive a restart of
// all managers (with etcd), or if servers are added and removed automatically.
package cluster
