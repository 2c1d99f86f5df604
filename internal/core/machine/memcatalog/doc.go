// Package memcatalog replicates the catalog of namespaces in the memory of the managers, for groups
// without a store.
//
// # Design
//
// Every manager has the newest catalog that it has received, with the term of the leader that wrote
// it and its version. The leader sends a changed catalog to all managers; it is committed when a
// majority has it. A new leader queries all managers, selects the newest catalog of a majority, and
// replicates it under its own term before it uses it.
//
// A manager that has just started is blank: it has no catalog, and does not count towards a
// majority until a leader has sent it one. The reason: a committed catalog may be unknown to all
// members of a majority that includes a blank manager. So a new leader waits for a majority of
// managers that are not blank, or for responses from all managers. In the latter case a catalog
// that none of them has is lost.
//
// This happens when a group is created, and when too many managers restart at once. In the second
// case the record of granted leases may be lost too. So the leader waits for the longest possible
// lease before it uses the remaining catalog. The wait begins when the leader has its authority: all
// other leases were granted by earlier leaders, whose authority ended before.
//
// A setting is for managers inside the owners' processes. Rebuild: the leader waits for a majority of
// responses instead of all, and until no manager with another configuration runs. A catalog that only other managers have is lost, even if these run. All
// managers replace it by the leader's, which has a later term. No lease depends on it: the leader has
// waited until all have expired.
//
// Why a committed catalog is not lost while a majority runs: The leader commits only while it has
// the authority to lead, so no later leader has queried the managers yet. The managers that have
// the catalog keep it, and reject requests of earlier terms. The next leader gets it from one of
// them, since any two majorities of managers that are not blank intersect.
//
// This requires that a manager that is not blank has everything that earlier processes of the same
// manager confirmed. So a blank manager accepts a catalog only from a leader that has received a
// response of its present process, identified by a number, while the leader had the authority to
// lead. Earlier processes confirmed catalogs before that response, so of no later term, and of its
// own term the leader sends the newest. Without the process number, a delayed message of a leader
// whose lease has expired could make a blank manager count towards a majority.
package memcatalog
