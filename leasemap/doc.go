// Package leasemap is the state of a server: a map from names to values, each of
// which only the server that owns the name reads and changes.
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
// Every operation does what package leasehold obliges a server to do: it checks
// that this process owns the name, discards what is left of an earlier tenure,
// operates, stamps the result with the lease's generation, and confirms that the
// lease was held throughout before it says so. When a name goes to another server
// its value goes with it, and what has expired or was lost with a server is not
// there.
//
// # What an operation's error means
//
//   - [leasehold.ErrNotOwner]: this server does not own the name. Nothing was done.
//     The caller looks again. Somewhere in it is an error with the method
//     RefusedKey() (name string, key leasehold.Key), for errors.As.
//   - [leasehold.ErrSuspended]: this server owns the name, and no manager has renewed its
//     lease in time. Nothing was done, and the value is kept: see below. The caller waits
//     and asks again. It has RefusedKey, too.
//   - [leasehold.ErrIndeterminate]: the lease ended while the operation was under way. A
//     change may have been carried out and have moved on with the name, or be lost.
//   - [leasehold.ErrUnavailable]: the context ended before it was the operation's turn.
//     Nothing was done. errors.Is finds the context's error.
//   - [leasehold.ErrStale]: the value has another version than [WithVersion] wants. Nothing was
//     done.
//   - [leasehold.ErrLimit]: there is no room for another name. Nothing was done.
//   - Whatever the function of an Update returns: nothing was done.
//
// # Outages of the managers
//
// While no manager answers, and the server's leases are suspended (see package owner), no
// operation succeeds and all values stay. When the leases are resumed they are served
// again, with the same versions, whatever the length of the outage. A TTL goes on
// meanwhile. Values of a name that another server was granted are removed.
//
// # Values
//
// A function that changes a value gets a copy, which takes the value's place when
// the function returns nil. The copy shares what the value has pointers to, maps and
// slices among them, with what others have read: a function does not change those in place,
// but makes new ones. The same holds for what Get returns.
//
// Values are moved to other servers as JSON, unless Config says otherwise.
//
// # Availability instead
//
// A map with Config.Weak asks for no lease: whichever server is asked answers with what
// it has, which may be old or nothing, and two servers may have different values of
// one name. What it has of others is gone after the TTL. It is for caches and for
// what people will forgive, as the PRS paper's feed processor has it.
//
// # Concurrency and cost
//
// All methods may be called from many goroutines at once. Operations on one name are
// carried out one after the other; those on different names do not wait for each
// other, however long a function takes. So a function may ask a database. But it must not
// use the map for its own name, nor wait for one that does; and while it runs its name
// cannot be moved to another server, for which a range is without one for five seconds at
// the most (see [owner.Mover]). A function whose lease has ended holds up nobody.
//
// An operation costs two checks of the lease and two locks that others rarely have. It does
// not allocate, unless the name is new or, for a Get, not there.
//
// Names are spread by their keys, which are hashes unless Config.Key says otherwise.
// Keys that lie close together make operations wait for each other more often.
//
// A Map that [Join] has made has one goroutine, which removes what has expired, some
// at a time.
package leasemap
