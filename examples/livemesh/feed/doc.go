// Package feed is the RSS-Processor of Live Mesh: what people do, coalesced into one feed for
// each user that readers poll.
//
// Others post real feeds to it, RSS, Atom or JSON Feed, whose items say what somebody did,
// and events of other services, from which it generates items: "Alice is now online". It
// answers with a feed in which all that one person did within an hour is one entry: "Alice
// updated her profile and added Bob as a friend".
//
// # What it promises, and what not
//
// People read it, who forgive much, and so it prefers availability (PRS 3.1): whichever
// server gets a request carries it out, and asks no lease. It answers where the other
// services refuse: while a user moves from one server to another, and on a server that has
// lost its lease, or cannot reach a manager. For readers that means:
//
//   - Items may be missing, when a server has died or a user has gone to another server
//     without what it had. Nobody is told.
//   - Items may show again, or come and go: two servers may have different feeds of one
//     user for a while, and a feed that was deleted may still be on another.
//   - Every answer is a whole and valid feed. If there is nothing, because there never was
//     or because it was lost, it is one without entries, and not an error.
//
// When a server is stopped properly, or a user is moved, feeds go along. A feed to which
// nothing is posted is gone after the TTL.
//
// # Coalescing
//
// Time is cut into windows. What one person did within a window is one entry, whose id stays
// the same whatever else arrives or goes: to a reader an entry changes, and is not there
// twice. So windows begin at the full hour, for instance, and not when somebody does
// something. The order in which items arrive does not matter.
//
// Who did it is the item's author, or that of its feed. If the title begins with the name of
// the author, or the beginning of it, the rest is what was done. If not, the author "posted"
// it. Without an author it is who the title begins with: all words that begin with a capital
// letter, if the next does not, and the first is no article. If that does not say who
// either, the item is an entry of its own.
//
// The title of an entry says the same thing only once, and no more than [MaxSaid] things: the
// latest. The content of the entry has all.
//
// # The API
//
// It is HTTP. The second segment of the path is the name of the user, and what requests are
// routed by.
//
//	POST   /feeds/USER/items                    a feed
//	POST   /feeds/USER/events                   an [Event] as JSON
//	GET    /feeds/USER?format=atom|rss|json     the coalesced feed
//	DELETE /feeds/USER
//
// A GET without a format goes by its Accept header, and is Atom if that does not say. Answers
// have an ETag: a reader that has the feed already, and says so with If-None-Match, gets 304.
//
// Of an item are kept its title, as text, its author, its link and its date. One that is
// there already, by its guid or its link, is not added again. If there is no room, the oldest
// go first. One without a date, or with one in the future, has the time at which it arrived.
// Nothing that a feed names is fetched.
//
// What is no feed is refused with 422, and so is one whose elements are nested more deeply,
// or are more, than feeds have. What is too large is refused with 413. A server that works
// on as many requests as it should refuses more at once, with 429 and Retry-After, and so
// does a frontend that has as many under way to one server (PRS 3.3). Then nothing was done.
package feed
