package leasehold

import "fmt"

// A Cause is the reason why the state of a range was lost.
type Cause uint8

// The causes. They are part of the wire protocol and are never renumbered. No [Loss] has
// CauseMoved: it is the cause of the end of a lease at the source of a move.
const (
	CauseUnknown   Cause = 0
	CauseExpired   Cause = 1 // the holder sent no renewal before its lease expired
	CauseReleased  Cause = 2 // the holder released the lease after a recall
	CauseLeft      Cause = 3 // the holder closed
	CauseRefused   Cause = 4 // the holder did not have the lease: it had restarted or had let it expire
	CauseRestarted Cause = 5 // the holder's successor proved that its process has ended
	CauseContact   Cause = 6 // a lookup with ConservativeRecovery has lost contact with the managers
	CauseMoved     Cause = 7 // nothing was lost: the state was moved to another owner
	CauseDied      Cause = 8 // a supervisor proved that the holder's process has ended
)

var causeNames = [...]string{
	CauseUnknown:   "unknown",
	CauseExpired:   "expired",
	CauseReleased:  "released",
	CauseLeft:      "left",
	CauseRefused:   "refused",
	CauseRestarted: "restarted",
	CauseContact:   "contact lost",
	CauseMoved:     "moved",
	CauseDied:      "died",
}

// String returns the name of the cause, or the number of a cause of a newer version.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("cause(%d)", uint8(c))
}

// A Loss reports that the state of a range is gone. A caller that can recreate the state
// should do so.
//
// Only a lookup with ConservativeRecovery reports losses with CauseContact. Such a
// loss covers the whole key space: no manager has replied for so long that any state
// may be lost. It is repeated until contact is restored. It has no owner and no
// generation, and its LSN is that of the lookup's table.
type Loss struct {
	Range      Range
	Owner      OwnerID    // the holder of the state
	Generation Generation // of the holder's lease
	Cause      Cause
	LSN        LSN // of the table change that recorded the loss
	// Resume is the LSN from which a reader resumes after it has handled this loss and all
	// earlier ones. Several losses may have the same LSN. Only the
	// last of them has Resume == LSN; the others have LSN - 1, so that a reader
	// that stops between them receives all of them again.
	Resume LSN
}

// String formats the loss as one line for a log.
func (l Loss) String() string {
	if l.Owner == "" {
		return fmt.Sprintf("%v lost: %v (lsn %d)", l.Range, l.Cause, l.LSN)
	}
	return fmt.Sprintf("%v lost by %q: %v (generation %d, lsn %d)", l.Range, string(l.Owner), l.Cause, l.Generation, l.LSN)
}
