// Package fenceetcd carries the generation of a lease to etcd, so that a late
// writer is refused there. Package fence says why, and what a resource is.
//
//	lease, ok := o.Check(leasehold.KeyOf("alice"))
//	...
//	resp, err := fenceetcd.Guard{}.Txn(ctx, client, "alice", lease.Generation).
//		Then(clientv3.OpPut("/presence/alice", address)).
//		Commit()
//	if errors.Is(err, leasehold.ErrStale) {
//		... // another server has alice by now: this one is late
//	}
//
// The transaction is the application's own, with If, Then and Else as it likes, put
// inside one that compares and raises the generation of the resource. That is in a
// key of its own, see [Guard.Key]. Etcd does both or neither, and in an order that
// all of its members agree on; what it has answered it does not forget, unless it is
// restored from a backup.
//
// # What it costs
//
// One round trip, and one more key that is written. The first transaction on a
// resource takes three, since etcd cannot compare a value that is not there. Each
// resource that was ever written has a key for ever; remove it when the resource is
// gone for good, and no process that wrote it is left: without it a late writer is
// accepted.
//
// A user of etcd who is not root needs permission to read and write under the
// guard's prefix. This package must not be mistaken for the managers' store, which
// may be another etcd: what it guards is the data of the application.
package fenceetcd
