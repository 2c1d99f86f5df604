// Package autosharding serves the auto-sharding protocol of gRPC (gRFC A119) on a manager: stock
// gRPC clients receive the lease table as an assignment of keys to servers.
//
// # Assignments
//
// An assignment is a table at one LSN, its generation. Slices are the ranges of the table; adjacent
// ranges of one server are one slice. Keys are 16 lower-case hex digits, so that their bytewise order is
// the order of keys. The first slice starts at the empty key and the last has no end, so every
// header value is in a slice. A vacant range is a slice without endpoints. A table at LSN 0 is no
// assignment: no key has had an owner, and clients wait.
//
// # Feeds
//
// A feed follows the table of one namespace in this process, as a lookup does: requests go to the
// manager's machine, and the leader or the relay of a standby replies. Each table is encoded once, as
// frames that all clients of the namespace share. After an encoding the feed pauses for nine times
// as long; the first table after a quiet time is encoded at once.
//
// # Clients
//
// A [delivery] decides what a client receives: one assignment at a time, and the newest one after
// its acknowledgement. Between two assignments a client has no memory beyond its stream. Limits end
// the stream, and the client reconnects with the last generation that it has accepted:
//
//   - time for the first request, for the table, for sending, and for the acknowledgement;
//   - the bytes of superseded assignments that are still being sent, in total for a namespace;
//   - the number of streams, and the size of load reports.
package autosharding
