// Package lookup is a caller's copy of a lease table: it answers where a key
// is, and reports which keys lost their state.
//
//	l, err := lookup.Open(ctx, lookup.Config{Namespace: "presence", Managers: addrs})
//	if err != nil {
//		return err
//	}
//	defer l.Close(ctx)
//	addr, ok := l.Find(leasehold.KeyOf("user-4711"))
//
// One Lookup serves a whole process, from as many goroutines as there are.
//
// # What a caller must do
//
// The obligations are those numbered 7 to 9 in the documentation of package
// leasehold: treat an address as a hint, expect to retry requests, and recreate
// lost state. [Lookup.Do] fulfils the first two.
//
// # What it costs
//
// Find takes a few memory accesses, the same at a hundred ranges and at a
// hundred thousand, takes no lock and allocates nothing. The whole table is
// kept, 100 to 200 bytes for each range. A change of the table costs time
// linear in its ranges, a millisecond or two at 64,000 of them, on a goroutine
// of its own; changes that come faster than that are taken up together.
//
// # Managers
//
// A Lookup follows one of Config.Managers, and switches to the next if that fails or has
// too old a table. It prefers standbys, to keep load off the leader; so all managers should
// be in the list. Without Config.Credentials it connects in plain text, and only to managers
// on the loopback interface; with those of package secure it authenticates by its
// certificate. Open fails with [leasehold.ErrDenied] if the managers' access file does not
// permit to follow the namespace.
//
// # Outages of the managers
//
// Find goes on answering from the last table: a server that no longer owns a key
// refuses the request, so a stale answer costs a round trip and not safety.
// [Lookup.Age] returns how old the table may be. Once that is more than
// Config.Stale, contact is lost: whether state was lost is unknown, and
// Config.OnContact is called. There is nothing to recreate for that. When a manager
// answers again, every loss since the table is reported, exactly, and then
// OnContact is called for the restored contact. An outage of managers or network
// in which no owner lost state reports no loss.
//
// PRS reports the whole key space as lost instead, and so does a lookup with
// Config.ConservativeRecovery, with leasehold.CauseContact, and again every
// Config.Stale while contact is lost.
//
// # DESIGN
//
// The machine in internal/core/machine/lookup decides; this package is its shell.
// One goroutine runs the machine. A second one turns each table into an index
// that can be read without a lock, and swaps it in. The losses of that step are
// reported after that, so that a reader of a loss finds the new owner.
//
// Losses are kept in a log of bounded length, which each reader follows at its
// own pace. A reader that falls behind it, or resumes from before it, misses
// nothing: every range of the table knows when state in it was last lost, so
// the reader gets those instead, without owner and cause. That costs no memory
// per reader, and is exact: a report that everything is lost would make callers
// recreate all state.
package lookup
