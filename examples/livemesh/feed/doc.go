// Package feed is the RSS-Processor of Live Mesh: the activities of people, coalesced into one
// feed for each user, which readers poll.
//
// Clients add feeds in RSS, Atom or JSON Feed, whose items are activities, and events of other
// services, from which it generates items: "Alice is now online". It returns a JSON Feed in which
// all activities of one person within an hour are one entry: "Alice updated her profile and
// added Bob as a friend".
//
// # Guarantees
//
// People tolerate gaps in such feeds, so the service prefers availability (PRS 3.1): any server
// executes a request, without checking a lease. It responds where the other services refuse:
// while a user is moved from one server to another, and on a server that has lost its lease or
// has no contact with a manager. The consequences for readers:
//
//   - Items may be missing, after a server has ended or a user has moved to another server
//     without its state. There is no notification.
//   - Items may reappear, or come and go: two servers may have different feeds of a user for
//     a while.
//   - Every response is a valid feed. A feed that never existed, or was lost, is a feed
//     without entries and not an error.
//
// When a server is drained, or a user is moved, feeds are transferred. A feed expires if nothing
// is added for the TTL.
//
// # The API
//
// The API is HTTP. The second segment of the path is the name of the user. Requests are routed
// by it.
//
//	PUT    /feeds/USER/items     adds the items of a feed
//	PUT    /feeds/USER/events    adds an [Event], as JSON
//	GET    /feeds/USER           the coalesced feed
//
// The service stores the title of an item, as text, its author, link and date. Duplicates, by
// guid or link, are dropped. If a feed is full, the oldest items are dropped. An item without
// a date, or with one in the future, has the time of its arrival. No address in a feed is
// fetched.
//
// A malformed feed fails with 400, and so does one with too many or too deeply nested elements.
// A frontend at its limit of requests to one server refuses others with 503 (PRS 3.3). Refused
// requests have no effect.
package feed
