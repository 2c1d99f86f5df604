// Package manager is the machine of the leader of one namespace. It tracks which owners are alive, runs the
// partitioning policy, recalls and grants leases, and commits every change of the lease table before it is sent to
// any owner or lookup.
//
// # DESIGN
//
// A machine exists for one term. It starts from the stored table, treats every lease in it as held, and ends when
// it is deposed; the next leader starts a new machine. No state outlives a term but the table.
//
// A diskless leader has no stored table. Then a [Census] collects the claims of the owners, and the machine starts
// from the table that results.
//
// The machine separates three things:
//
//   - The table is the committed state. Nothing else is sent to owners and lookups.
//   - A peer is one session of an owner, which has sent a request to this leader or is named in the table. Its
//     leases expire at its deadline, unless it sends a request.
//   - The desired assignment is the result of the policy. The leader recalls ranges where the table differs from
//     it, and grants ranges that are free.
//
// The state of a machine is split by meaning, one file for each part: leadership, committed, pending, freed,
// membership, outage, history, assignment, moveset and compact for the machine, and acks, renewal, claims, holding,
// exit and peermoves for a peer. Mutually exclusive modes of a part are a stage.
//
// A range is granted only when it is free: never granted, released, or expired. It is released when its holder
// sends a request that lacks it and acknowledges the leader's newest message (see package protocol). It has expired
// when its holder's deadline has passed. The deadline counts from the arrival of the last accepted request. Every
// reply echoes that request, and the holder's own deadline counts from the time of sending it, so the holder's
// deadline is earlier. Messages to a silent owner do not extend its deadline.
//
// A session becomes a member only after it has acknowledged a message of a leader. Otherwise an owner that can send
// and not receive would be granted ranges repeatedly, and lose them each time.
//
// At most one batch of changes is pending. Later decisions wait for the next batch. If the outcome of a commit is
// unknown, the machine reads the end of the log, and either continues or sends the identical batch again. It makes
// no new decision before the outcome is known.
package manager
