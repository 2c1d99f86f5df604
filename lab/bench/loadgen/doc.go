// Package loadgen simulates the owners and lookups of many servers and callers.
//
// [Clients] are thousands of them in one process, so lean that they can share a
// computer with the manager under load. They send what real ones send. An [Owner]
// runs the state machine of package owner. A lookup numbers its requests, polls as
// often as the library's does, follows the LSNs of the changes without a gap, and
// knows the age of its proof; it discards the table. Both speak HTTP/2 frames on a
// [Conn], which costs a goroutine and a few kB.
//
// [Library] is owners of the owner library, which reconnect exactly as those of an
// application do. [Local] is one of them with its manager in the same process.
package loadgen
