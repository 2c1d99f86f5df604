// Package fenceredis checks fencing tokens in Redis, so that late writes are rejected. Package
// fence describes the reason, and what a resource is.
//
//	var renew = fenceredis.NewScript(`
//		redis.call('SET', KEYS[1], ARGV[1], 'EX', 60)
//		return redis.call('INCR', KEYS[2])`)
//	...
//	lease, ok := o.Check(leasehold.KeyOf("alice"))
//	...
//	n, err := fenceredis.Guard{}.Run(ctx, client, renew, "alice", lease.Generation,
//		[]string{"{alice}:address", "{alice}:renewals"}, address).Int64()
//	if errors.Is(err, leasehold.ErrStale) {
//		... // another server owns alice: this write was late
//	}
//
// [Guard.Do] runs commands instead of a script. [Guard.Check] writes only the generation: a
// new owner calls it before it reads its state.
//
// # Implementation
//
// The generation of a resource is in a key of its own. One script compares and raises it, and
// runs the application's part; Redis executes scripts atomically. A transaction with WATCH
// and MULTI would not be safe: a client that reconnects loses the WATCH and may send MULTI on
// the new connection.
//
// A script is sent once. go-redis retries other commands without a response, but a script may
// not be idempotent, so the caller decides: see [leasehold.ErrIndeterminate].
//
// # Redis Cluster
//
// All keys of a script must be in one slot. The key of the fence has the resource as its hash
// tag, "leasehold:fence:{alice}", so all keys of the resource must have that tag, too:
// "{alice}:address". Resources must not contain braces.
//
// # Durability
//
// A fence is as durable as the data beside it, which in Redis may be little.
//
//   - Replication is asynchronous. After a failover the last writes may be missing, and with
//     them the last generation: a late write of the previous owner is then accepted until
//     the new owner writes again or calls Check. WAIT makes that less likely, but not
//     impossible. The same applies to a server that restarts from a snapshot or log.
//   - Eviction. With a maxmemory-policy of allkeys-* Redis may evict fences. Use noeviction,
//     or volatile-* with a TTL of 0.
//   - Expiry: [Guard.TTL]. Without it, each resource that was ever written keeps a key. Delete
//     the key when the resource is deleted, and all processes that wrote it have ended.
//
// If that is not sufficient, keep the data in PostgreSQL or etcd.
package fenceredis
