// Package fenceetcd checks fencing tokens in etcd, so that late writes are rejected. Package
// fence describes the reason, and what a resource is.
//
//	lease, ok := o.Check(leasehold.KeyOf("alice"))
//	...
//	resp, err := fenceetcd.Guard{}.Txn(ctx, client, "alice", lease.Generation).
//		Then(clientv3.OpPut("/presence/alice", address)).
//		Commit()
//	if errors.Is(err, leasehold.ErrStale) {
//		... // another server owns alice: this write was late
//	}
//
// The application's transaction, with its own If, Then and Else, is nested in one that
// compares and raises the generation of the resource, which is in a key of its own: see
// [Guard.Key]. etcd executes both or neither, linearizably, and durably unless it is restored
// from a backup.
//
// # Cost
//
// One round trip, and one more key that is written. The first transaction on a resource takes
// three, because etcd cannot compare the value of a missing key. Each resource that was ever
// written has a key. Delete it when the resource is deleted, and all processes that wrote it
// have ended: without it a late write is accepted.
//
// A user of etcd other than root needs permission to read and write under the guard's prefix.
// This etcd holds the data of the application; the managers' store may be another one.
package fenceetcd
