// Package fence checks fencing tokens in a database, so that late writes are rejected. This
// package is for PostgreSQL, through database/sql and any driver; fenceredis is for Redis,
// fenceetcd for etcd.
//
// A lease decides who may write, but cannot stop a write that has left the process. A server
// that is paused between its check and its write, or whose write is delayed, writes after
// another server has become the owner. The fencing token is the lease's generation, which
// rises from owner to owner. The database stores the highest generation of each resource,
// in the same transaction as the write, and rejects lower ones:
//
//	guard := fence.SQL{} // the table leasehold_fence, see Schema
//	...
//	lease, ok := o.Check(leasehold.KeyOf("alice"))
//	...
//	err := guard.Do(ctx, db, "alice", lease.Generation, func(tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, "UPDATE presence SET address = $1 WHERE name = $2", address, "alice")
//		return err
//	})
//	if errors.Is(err, leasehold.ErrStale) {
//		... // another server owns alice: this write was late
//	}
//
// # Duties of a server
//
//  1. Choose resources that have one owner at a time: the name whose key was checked. Two
//     names that share a resource may have two owners, with unrelated generations, which
//     would reject each other's writes.
//
//  2. Make all writes through the guard. Writes without it are not checked. All writers must
//     use the same table and the same resource names. A table without a schema is the first
//     of its name on the connection's search_path, and temporary tables come first: where
//     that can differ, qualify the schema, fence.SQL{Table: "app.leasehold_fence"}.
//
//  3. Make reads on which writes depend through the guard, too, above all when a new owner
//     loads its state. Otherwise a late write of the previous owner may follow the read. A
//     Do that only reads is sufficient, because it stores the generation.
//
//  4. Synchronize the writes of one owner. All writes of one generation are accepted, in
//     any order: this needs the application's lock, see duty 5 in package leasehold.
//
// Then a rejection is final: no later write of that generation is accepted. And an accepted
// write happened before all reads and writes of later owners.
//
// # Isolation levels
//
// The guard is correct at every isolation level: the fence is a row that each transaction on
// the resource updates, so that transactions are serialized. At read committed, the later
// transaction continues after the earlier one, and its statements see the earlier writes. At
// repeatable read and serializable, PostgreSQL aborts it with a serialization failure,
// 40001. [SQL.Do] retries if that happens before the application's part. If it happens
// later, or at the commit, the kind of the error is [leasehold.ErrUnavailable], and nothing
// was written.
//
// # Cost
//
// One more statement in the transaction, which updates one row, and one small row for each
// resource that was ever written. Transactions on one resource are serialized; those on
// different resources are independent.
//
// A row can be deleted when no process can have a lease of an earlier generation. Without the
// row a late write is accepted. The column seen has the time of the last use, by the
// database's clock, so that this statement deletes rows that are unused for longer than a
// process can be paused:
//
//	DELETE FROM leasehold_fence WHERE seen < now() - interval '30 days'
//
// After the managers' store is restored from a backup, generations may be lower than those in
// the database, and all writes are rejected: stop all servers, and empty the table. If the
// database itself is restored, or fails over to a replica that lags, it loses fences together
// with the data; use synchronous replication to prevent that.
//
// # Services
//
// A service of our own that owners of another namespace call refuses late effects with a [Receiver], in its own state.
//
// # Other databases
//
// The statements are for PostgreSQL, and tested with it through pgx. Errors are distinguished
// by SQLSTATE, which both pgx and lib/pq report.
package fence
