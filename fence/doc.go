// Package fence carries the generation of a lease to a database, so that a late
// writer is refused there. This package does so for PostgreSQL, through
// database/sql and whatever driver; fenceredis does for Redis, fenceetcd for etcd.
//
// A lease says who may act; it cannot recall what has left the process. A server
// that was stopped between its check and its write, or whose write was long under
// way, writes when another has the key already. Generations rise from owner to
// owner. So the database remembers the highest that it has seen for each resource,
// in the same transaction as what is written, and refuses lower ones:
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
//		... // another server has alice by now: this one is late
//	}
//
// # What a server must do
//
//  1. Name resources well. A resource is what has one owner at a time: the name
//     whose key was checked. Two names that share a resource may have two owners,
//     with generations of their own, and these would refuse each other.
//
//  2. Write through the guard, always. It sees only the writers that ask it, and
//     all of them must use the same table and name the resource alike. A table
//     without a schema is the first of its name on the connection's search_path,
//     and a temporary one comes before them all: qualify the schema,
//     fence.SQL{Table: "app.leasehold_fence"}, where that may differ.
//
//  3. Read through the guard, too, what it acts upon: first of all when it has
//     become the owner and loads state. Otherwise the owner before, which is late,
//     may write after that was read. A Do that only reads is enough, since it makes
//     the generation known.
//
//  4. Keep its own goroutines apart. All writes of one generation are allowed, in
//     whatever order they arrive: that is the application's lock, see obligation 5
//     of package leasehold.
//
// Then what was refused is final: no write of that generation will ever be
// accepted. And what was accepted was written before any later owner wrote or read.
//
// # Levels of isolation
//
// The guard holds at each of them, because the fence is a row that every
// transaction on the resource updates: the later one waits for the earlier one. At
// read committed it then goes on, and each statement sees what the earlier one
// wrote. At repeatable read and serializable PostgreSQL lets it fail with a
// serialization failure, 40001, since it would not see that. [SQL.Do] begins again
// by itself if that happens before the application's part. If it happens within, or
// at the commit, the error has the kind [leasehold.ErrUnavailable] and says that
// nothing was written.
//
// # What it costs
//
// One more statement in the transaction, which updates one row, and one small row
// for each resource that was ever written. Transactions on one resource take turns. Those on different resources have nothing to do with each other.
//
// A row is needed for as long as a process may be around that had the resource
// before. Without it a late writer is accepted. The column seen says when the row was
// last used, by the database's clock, so that this forgets in safety what has been
// quiet for longer than any process could sleep:
//
//	DELETE FROM leasehold_fence WHERE seen < now() - interval '30 days'
//
// If the managers' store was restored from a backup, generations may come a second
// time, lower than the database knows, and all writers are refused: stop all
// servers, and empty the table. If the database itself was restored, or fails over
// to a replica that was behind, it has forgotten fences together with the data: that
// is what synchronous replication is for.
//
// # Other databases
//
// The statements are PostgreSQL's, and PostgreSQL is what they are tested with,
// through pgx. Errors are told apart by SQLSTATE, which both pgx and lib/pq report.
package fence
