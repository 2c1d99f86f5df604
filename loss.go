package leasehold

import "fmt"

// A Cause says why the state of a range was lost.
type Cause uint8

// The causes. They cross the wire and are never renumbered. No [Loss] has
// CauseMoved: it is why a lease ended at the owner that its state has left.
const (
	CauseUnknown   Cause = 0
	CauseExpired   Cause = 1 // the holder was silent for longer than its lease
	CauseReleased  Cause = 2 // the holder gave it back, having been asked to
	CauseLeft      Cause = 3 // the holder closed
	CauseRefused   Cause = 4 // the holder did not know the lease: it had restarted or had let it expire
	CauseRestarted Cause = 5 // the holder's successor proved that its process is gone
	CauseContact   Cause = 6 // a lookup with ConservativeRecovery has lost contact with the managers
	CauseMoved     Cause = 7 // nothing was lost: the state has gone to another owner
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
}

// String names the cause; one from a newer peer is written as its number.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("cause(%d)", uint8(c))
}

// A Loss says that the state held in a range is gone, and that whoever can
// recreate it should.
//
// Only a lookup with ConservativeRecovery reports losses with CauseContact. Such a
// loss is of the whole key space: no manager has answered for so long that anything
// may have been lost. It is repeated while that lasts. It has no owner and no
// generation, and its LSN is that of the lookup's table.
type Loss struct {
	Range      Range
	Owner      OwnerID    // who held the state
	Generation Generation // the lease that it was held under
	Cause      Cause
	LSN        LSN // the change of the lease table that recorded the loss
	// Resume is the LSN to resume from once this loss and all that were reported
	// before it have been handled. Several losses may have the same LSN. Only the
	// last of them has Resume == LSN; the others have LSN - 1, so that a reader
	// that stops between them gets all of them again.
	Resume LSN
}

// String writes the loss as one line for a log.
func (l Loss) String() string {
	if l.Owner == "" {
		return fmt.Sprintf("%v lost: %v (lsn %d)", l.Range, l.Cause, l.LSN)
	}
	return fmt.Sprintf("%v lost by %q: %v (generation %d, lsn %d)", l.Range, string(l.Owner), l.Cause, l.Generation, l.LSN)
}
