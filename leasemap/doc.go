// Package leasemap is the state of a server: a map from names to values. Only the server
// that owns a name reads and changes its value.
//
//	m, err := leasemap.Join(ctx, owner.Config{
//		Namespace: "presence", Managers: managers, Addr: self,
//	}, leasemap.Config[Status]{TTL: time.Hour})
//	...
//	version, err := m.Update(ctx, "alice", func(s *Status) error {
//		s.Address = address
//		return nil
//	})
//	...
//	status, exists, err := m.Get("alice")
//
// Every operation fulfils the obligations of a server in package leasehold: it checks
// that this process owns the name, discards state of an earlier tenure,
// operates, stamps the result with the lease's generation, and checks that the
// lease was held without a gap before it returns. When a name moves to another server
// its value moves with it. A value that has expired, or was lost with a server, does not
// exist; see "Persistence" for values that are not lost.
//
// # Errors of operations
//
//   - [leasehold.ErrNotOwner]: this server does not own the name. Nothing was done.
//     The caller looks the name up again. The error wraps one with the method
//     RefusedKey() (name string, key leasehold.Key), for errors.As.
//   - [leasehold.ErrSuspended]: this server owns the name, but its lease is suspended because no
//     manager has renewed it in time. Nothing was done, and the value is kept: see below.
//     The caller retries after a backoff. It has RefusedKey, too.
//   - [leasehold.ErrIndeterminate]: the lease ended during the operation, or the store did not answer. A
//     change may have been executed and have moved with the name, or be lost.
//   - [leasehold.ErrUnavailable]: the context ended while the operation waited for the name, or the store is not
//     available. Nothing was done. errors.Is matches the context's error.
//   - [leasehold.ErrStale]: the value has another version than [WithVersion] requires. Nothing was
//     done.
//   - [leasehold.ErrLimit]: the map is full. Nothing was done.
//   - The error of the function of an Update: nothing was done.
//
// # Manager outages
//
// While no manager replies and the server's leases are suspended (see package owner),
// all operations fail and all values are kept. When the leases resume, the values are
// available again, with the same versions, after an outage of any length. A TTL continues
// meanwhile. Values of a name that was granted to another server are removed.
//
// # Several maps
//
// A [Group] has maps with values of several types for one owner. A range moves, is suspended and is
// lost with its values of all maps. Operations on two maps are not atomic, even for one name.
//
// # Persistence
//
// A map with Config.Store keeps its values in a database as well, so that a crash of a server loses nothing that was saved:
//
//	m, err := leasemap.Join(ctx, as, leasemap.Config[Session]{
//		TTL: time.Hour, Store: pgmap.Open(db, "sessions"),
//	})
//
// A value that is not in memory is loaded by the first operation that needs it, and so is the fact that there is none. Loads
// of one name are serialized, and those of a map limited by Config.MaxLoads. When the map is full, names that were
// not used recently leave its memory.
//
// A change returns when the store has it (write-through). If the store did not answer, the error is
// ErrIndeterminate: the map forgets the value, and the next operation loads what the store has. If the store has certainly
// not changed, the error is ErrUnavailable, and nothing was done. A touch is a change.
//
// With Config.WriteBehind, changes are saved in batches after the operations have returned. A crash loses those of the last
// MaxAge at most. They are saved before a move, and move with the mark that they are unsaved if the store is not
// available. OnLost reports changes that will never be saved while the process lives; those of a crashed process are in
// the ranges that lookups report as lost. [Map.Unsaved] has the present number.
//
// The store refuses late writes: every load and save has a token, the generation of the lease and a number, and after a
// load or save none with a lower token succeeds; a deleted name keeps its token. So a server that continues after a
// pause, beyond any clock bound, cannot overwrite a change of a later owner, and its own change is refused
// with ErrNotOwner or is reported by OnLost. While leases are suspended, unsaved changes are still saved: the store
// refuses them if there is another owner.
//
// In the store a TTL continues on the store's clock. Versions survive crashes.
//
// A Store can be added in a rolling restart: values that arrive from servers without it are saved within a second.
//
// A request for a name without a value costs a load, and a row in the store: a service whose names come from untrusted
// callers should reject those that it has not created, by a signature in the name for instance.
//
// # Values
//
// A function that changes a value gets a copy, which replaces the value when
// the function returns nil. The copy shares pointers, maps and slices with the value that
// other callers have read: a function must not change those in place,
// but replaces them. The same holds for the result of Get.
//
// Values are moved to other servers as JSON by default.
//
// # Weak maps
//
// A map with Config.Weak prefers availability and requires no lease: any server
// responds with its own value, which may be old or missing, and two servers may have different
// values of one name. Values of names that the server does not own are removed after the TTL.
// It is for caches and for data whose users tolerate errors, as in the feed processor of the
// PRS paper.
//
// # Concurrency and cost
//
// A Map is safe for concurrent use. Operations on one name are
// serialized; operations on different names do not wait for each
// other, even if a function is slow. So a function may query a database. But it must not
// use the map for its own name, nor wait for a function that does. While it runs, its name
// cannot move to another server, and a range in a move is unavailable for five seconds at
// most (see [owner.Mover]). A function whose lease has ended blocks no other operation.
//
// An operation costs two checks of the lease and two locks with little contention. It does
// not allocate, unless the name is new or, for a Get, missing.
//
// Names are distributed by their keys, which are hashes by default.
// With adjacent keys the contention is higher.
//
// A Map of [Join] or of a Group has one goroutine, which removes expired values in steps, and one more with a Store.
// With Config.Resident it has one per value and range.
package leasemap
