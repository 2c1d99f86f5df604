// Package manager is the machine of a leader for one namespace: it knows who
// is alive, decides who should have what, takes leases back and grants them,
// and records every change of the lease table before anyone hears of it.
//
// # DESIGN
//
// A machine lives as long as its leader's term. It starts from the stored
// table, treats every lease in it as held, and ends when it is deposed; the
// next leader starts a new one. There is no other way to become a leader and
// no state that outlives a term but the table.
//
// Where there is no store, the table has died with the leader before. Then a
// [Census] asks the owners what they have, and the machine starts from what that
// has found.
//
// Three things are kept apart:
//
//   - The table is what has been committed. Nobody hears of anything else.
//   - A peer is one session of an owner that this leader has heard, or that
//     the table names. Its deadline is when its leases end if it stays silent.
//   - The desired assignment is what the policy wants. Where the table differs
//     from it, the leader recalls; what is free, it grants.
//
// The state of a machine is split by meaning, one file for each part: leadership, committed, pending, freed,
// membership, outage, history, assignment, moveset and compact for the machine, and acks, renewal, claims, holding, exit
// and peermoves for a peer. Where modes exclude each other, the part has a stage.
//
// A range is granted only when it is free: never granted, given back, or
// expired. It is given back when its holder sends a request that lacks it and
// reflects the leader's newest message to it (see package protocol); it has
// expired when its holder's deadline has passed. The deadline runs from the
// arrival of the last request accepted, and every reply echoes that request,
// so that the holder's own deadline, which runs from its sending, comes first.
// Speaking to a silent owner does not move its deadline.
//
// A session becomes a member only when it has proved that it hears the leader.
// Otherwise an owner whose incoming link is cut would be given ranges again
// and again, and lose them each time.
//
// One batch of changes is under way at a time. What is decided meanwhile waits
// for the next one. If the outcome of a commit is unknown the machine reads
// the log's end and then either goes on or sends the very same batch again; it
// never decides anything new on a guess.
package manager
