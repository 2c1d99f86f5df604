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
//	PUT    /im/USER                      {"session", "address", "status", "ip"}: signs on
//	PATCH  /im/USER                      {"session", and changed fields}
//	POST   /im/USER/refresh?session=S    extends the TTL
//	DELETE /im/USER?session=S            signs off
//
// A session identifies the publisher of a user, for example a frontend; readers do not see it.
// A user has one session at a time: writes of another fail with 409. The same session may sign
// on again, which replaces the presence, so that a PUT is idempotent. To take over a user, a
// session reads the presence and signs on with its version as "if": that fails with 412 if the
// presence has changed since.
//
// A PATCH may have an "if", too. Versions are never reused, not even after a presence was lost.
//
// Oversized fields fail with 413, malformed requests with 400, a missing user with 404. Errors
// of the lease are those of package leasehttp.
//
// Operations on a user are linearizable, until the presence is lost.
package im
