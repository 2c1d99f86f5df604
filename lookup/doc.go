// Package lookup is a caller's copy of a lease table: it finds the server of a key,
// and reports the ranges whose state is lost.
//
//	l, err := lookup.Open(ctx, lookup.Config{Namespace: "presence", Managers: addrs})
//	if err != nil {
//		return err
//	}
//	defer l.Close(ctx)
//	addr, ok := l.Find(leasehold.KeyOf("user-4711"))
//
// A process needs one Lookup, which is safe for concurrent use.
//
// # Obligations of a caller
//
// The obligations have the numbers 7 to 9 in the documentation of package
// leasehold: treat an address as a hint, expect retries, and recreate
// lost state. [Lookup.Do] fulfils the first two.
//
// # Cost
//
// Find takes a few memory accesses, as many for a hundred ranges as for a
// hundred thousand. It takes no lock and does not allocate. The whole table is
// in memory, 100 to 200 bytes per range. A change of the table costs time
// linear in its ranges, a millisecond or two at 64,000 of them, on a separate
// goroutine; changes at a higher rate are applied in batches.
//
// # Managers
//
// A Lookup follows one of Config.Managers, and switches to the next if that one fails or its
// table is too old. It prefers standbys, to keep load off the leader; so all managers should
// be in the list. Without Config.Credentials it connects in plaintext, and only to managers
// on the loopback interface; with the credentials of package secure it authenticates by its
// certificate. Open fails with [leasehold.ErrDenied] if the managers' access file does not
// permit it to follow the namespace.
//
// # Manager outages
//
// During an outage Find uses the last table: a server that has lost its lease on a key
// refuses the request, so a stale address costs a round trip and not safety.
// [Lookup.Age] returns the maximum age of the table. When it exceeds
// Config.Stale, contact is lost: it is unknown whether state was lost, and
// Config.OnContact is called. Callers recreate nothing for that. When a manager
// replies again, every loss since the table's LSN is reported, exactly, and then
// OnContact is called for the restored contact. An outage of managers or network
// in which no owner loses state reports no loss.
//
// In PRS the whole key space is reported as lost instead. A lookup with
// Config.ConservativeRecovery does the same, with leasehold.CauseContact, and again every
// Config.Stale while contact is lost.
//
// # DESIGN
//
// The machine in internal/core/machine/lookup decides; this package is its shell.
// One goroutine runs the machine. A second one indexes each table for reads without
// a lock, and swaps the index in. The losses of a step are
// reported after its table, so that a reader of a loss finds the new owner.
//
// Losses are in a log of bounded length, which each reader follows at its
// own pace. A reader that is slower than the log, or resumes from before it, misses
// no loss: every entry of the table contains the LSN of the last loss in its range, so
// the reader receives those ranges instead, without owner and cause. That costs no memory
// per reader, and is exact: if the whole key space were reported, callers would
// recreate all state.
package lookup
