// Command grants asks how many owners can join, and how many leases can be
// granted, in a second: beside etcd's leases with keys that are put if they are
// absent, by clients that are connected and by those that connect first, etcd's
// mutexes, and ZooKeeper's ephemeral nodes.
//
//	cd bench && go run ./grants          all of it, in minutes
//	cd bench && go run ./grants -quick   short and rough
//
// Everyone keeps what he grants on three disks, or says that he does not with
// -fsync=false: the manager's store is a cluster of etcd of its own, as large as
// that of etcd's clients.
package main
