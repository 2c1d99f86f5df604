// Package im is the presence service of an instant messenger, the test application of the
// PRS paper (section 7): for each user the address for messages, a status, and the last known
// IP address.
//
// Presence is in memory on the server that owns the user's name, with a TTL. The frontend that
// a user is connected to publishes it, refreshes it, and publishes it again when it was lost
// with its server, which the frontend's lookup reports: see [Publisher]. So no presence is
// written to disk, and no client polls for losses.
//
// # The API
//
// The API is HTTP and JSON. The second segment of the path is the user. Requests are routed by
// it.
//
//	GET    /im/USER
//	PUT    /im/USER              {"session", "address", "status", "ip"}: publishes the user
//	DELETE /im/USER?session=S    signs off
//
// A session identifies the publisher of a user, for example a frontend; readers do not see it.
// The last session that published a user has it. A session repeats a PUT with "renew": true, to
// extend the TTL or after a loss. That fails with 409 if another session has the user, and changes
// nothing if the presence exists. So a PUT is idempotent.
//
// Malformed requests fail with 400, a missing user with 404. Errors of the lease are those of
// package leasehttp.
//
// Operations on a user are linearizable, until the presence is lost.
package im
