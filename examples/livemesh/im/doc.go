// Package im is the presence of users of an instant messenger, the application with which
// the PRS paper was measured (section 7): for each user the address for messages, a status,
// and the last IP address that is known.
//
// Presence is in memory on the server that owns the user's name, and lasts for a time. The
// frontend that a user is connected to publishes it, refreshes it, and publishes it again
// when it was lost with its server, of which the frontend's lookup tells: [Publisher] is all
// of that. So no presence is written to disk, and nobody asks again and again whether it is
// still there.
//
// # The API
//
// It is HTTP and JSON. The second segment of the path is the user, and what requests are
// routed by.
//
//	GET    /im/USER
//	PUT    /im/USER                      {"session", "address", "status", "ip"}: signs on
//	PATCH  /im/USER                      {"session", and what changes}
//	POST   /im/USER/refresh?session=S    lets it last for another TTL
//	DELETE /im/USER?session=S            signs off
//
// A session is whoever publishes the user, a frontend for instance; readers do not see it. A
// user has one at a time: what another session writes is refused with 409. The same session
// may sign on again, which replaces what is there, so that a PUT does no harm twice. A
// session that is to have the user nevertheless, because the user has come to it, reads the
// presence and signs on with its version as "if": that is refused with 412 if somebody else
// has changed it since.
//
// A PATCH may have an "if" too. Versions are never used again, not even when a presence was
// lost.
//
// What is too long is refused with 413, what is not understood with 400, and a user who is
// not there with 404. What the lease has to say is said as package leasehttp has it.
//
// All operations on a user happen one after the other: it is linearizable, until it is lost.
package im
