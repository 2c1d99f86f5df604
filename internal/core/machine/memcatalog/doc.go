// Package memcatalog is the machine by which managers keep the catalog of
// namespaces in their memory, where there is no store to keep it in.
//
// # DESIGN
//
// Every manager has the catalog as it last heard it, with the term of the leader
// who wrote it and its version. The leader sends a changed catalog to all, and it
// counts when a majority has it. A new leader asks all of them, takes the newest
// that a majority knows of, and sends that under its own term before it leads by
// it.
//
// A manager that was started knows nothing: it is blank, and until a leader has
// sent it the catalog it does not count among those who know. For a catalog that a
// majority had may be known to none of a majority one of which is blank. So a new
// leader waits until a majority knows something, or until all have answered: then
// what none of them knows is lost.
//
// That is how a group begins, and what happens when too many of it were restarted
// at a time. Then what owners were promised may be forgotten too, and the leader
// waits for as long as any lease may last before it leads by what is left.
//
// Why a catalog that counts is never forgotten while a majority lives. The leader
// says so only while it has the authority to lead, so that no later one has asked
// yet. Those who have it keep it, and accept nothing of an earlier term. The next
// leader hears of it from one of them, since two majorities of managers that
// remember share one.
//
// For that, one who remembers something must remember whatever its earlier lives have
// confirmed. So one who is blank takes a catalog only from a leader who has heard its
// present process, by its number, while it had the authority to lead. What an earlier
// process confirmed, it confirmed before that; so it was not of a later term, and of
// this term the leader sends the newest. Without the number, the message of a leader
// whose time was over long ago could make a blank manager count among those who know.
package memcatalog
