// Command grants measures how many owners can join, and how many leases can be
// granted, in a second: beside etcd's leases with keys that are put if they are
// absent, by clients that are connected and by those that connect first, etcd's
// mutexes, and ZooKeeper's ephemeral nodes.
//
//	cd lab/bench && go run ./grants          all of it, in minutes
//	cd lab/bench && go run ./grants -quick   short and rough
//
// All services keep what they grant in three processes, on disk: the manager's store
// is a cluster of etcd of its own, as large as that of etcd's clients.
package main
