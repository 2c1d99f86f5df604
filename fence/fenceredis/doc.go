// Package fenceredis carries the generation of a lease to Redis, so that a late
// writer is refused there. Package fence says why, and what a resource is.
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
//		... // another server has alice by now: this one is late
//	}
//
// [Guard.Do] takes commands instead of a script. [Guard.Check] writes nothing but
// the generation: a new owner calls it before it reads what it will act upon.
//
// # How it works
//
// The generation of a resource is in a key beside the data. One script compares it,
// raises it, and does what the application wants, and Redis runs nothing else
// meanwhile. A transaction with WATCH and MULTI could do the same, but a client that
// loses its connection and sends MULTI again on another one has lost the WATCH, too.
//
// A script is sent once. go-redis sends other commands again when it got no answer;
// a script may not bear that, and so the caller decides: see [leasehold.ErrIndeterminate].
//
// # In a cluster
//
// A script runs where its keys are, and they must be in one slot. The key of the
// fence has the resource as its hash tag, "leasehold:fence:{alice}". So all keys of
// the resource should have that tag, too: "{alice}:address". Then resources have no
// braces in them.
//
// # What Redis forgets
//
// A fence is as durable as the data beside it, and in Redis that may be little.
//
//   - Replication is asynchronous. When a replica takes over, the last writes may be
//     missing, and with them the last generation: then a late writer of the owner
//     before is accepted, until the new owner writes again or calls Check. WAIT makes
//     that less likely, and not impossible. The same is true of a server that
//     restarts from its last snapshot or log.
//   - Eviction. With a maxmemory-policy of allkeys-something Redis may throw fences
//     away. Use noeviction, or volatile-something with a TTL of 0.
//   - Expiry: [Guard.TTL]. Without, each resource that was ever written costs a key
//     for ever. Delete that when the resource is gone for good, and no process that
//     wrote it is left.
//
// Where that is not good enough, keep what must not be overwritten in PostgreSQL or
// etcd.
package fenceredis
