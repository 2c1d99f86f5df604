// Package feed is the RSS-Processor of Live Mesh: the activities of people, coalesced into one
// feed for each user, which readers poll.
//
// Clients post feeds in RSS, Atom or JSON Feed, whose items are activities, and events of other
// services, from which it generates items: "Alice is now online". It returns a feed in which
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
//     a while, and a deleted feed may still be on another server.
//   - Every response is a valid feed. A feed that never existed, or was lost, is a feed
//     without entries and not an error.
//
// When a server is drained, or a user is moved, feeds are transferred. A feed expires if nothing
// is posted for the TTL.
//
// # Coalescing
//
// Time is divided into windows. The activities of one person within a window are one entry,
// whose id does not change when activities are added or dropped: readers see an entry change,
// not a second one. So windows begin at the full hour and not at an activity. The result does
// not depend on the order of arrival.
//
// The person is the item's author, or that of its feed. If the title begins with the author's
// name, or the first words of it, the rest is the action. If not, the action is that the author
// "posted" it. Without an author the person is all words with a capital letter at the start of
// the title, if the next word has none and the first is not an article. Otherwise the item is
// a separate entry.
//
// The title of an entry contains each action once, and at most [MaxTitleActions] actions: the
// latest. The content of the entry has all activities.
//
// # The API
//
// The API is HTTP. The second segment of the path is the name of the user. Requests are routed
// by it.
//
//	POST   /feeds/USER/items                    a feed
//	POST   /feeds/USER/events                   an [Event] as JSON
//	GET    /feeds/USER?format=atom|rss|json     the coalesced feed
//	DELETE /feeds/USER
//
// Without a format, a GET uses the Accept header; the default is Atom. Responses have an ETag
// and support If-None-Match.
//
// The service stores the title of an item, as text, its author, link and date. Duplicates, by
// guid or link, are dropped. If a feed is full, the oldest items are dropped. An item without
// a date, or with one in the future, has the time of its arrival. No address in a feed is
// fetched.
//
// A malformed feed fails with 422, and so does one with too many or too deeply nested elements.
// An oversized one fails with 413. A server at its limit of concurrent requests refuses others
// with 429 and Retry-After, and so does a frontend at its limit of requests to one server
// (PRS 3.3). Refused requests have no effect.
package feed
