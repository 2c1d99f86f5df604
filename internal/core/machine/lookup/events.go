package lookup

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// An Event is something that happens to a lookup.
type Event interface{ lookupEvent() }

type (
	// Reply is a message from a manager that says it leads.
	Reply struct{ *protocol.LookupReply }

	// Redirect is a message from a manager that does not lead and has no table.
	Redirect struct {
		From storage.ManagerID
		protocol.NotLeader
	}

	// Refused is a manager's refusal to serve the lookup: the namespace does not exist, for
	// instance. A later request may succeed.
	Refused struct {
		From storage.ManagerID
		Kind leasehold.Kind
	}

	// Failed reports that a manager cannot be reached, or that its answer is invalid.
	Failed struct{ From storage.ManagerID }

	// Slept says that our clock may have stood still while others ran on: the
	// computer was suspended.
	Slept struct{}

	// Refresh says that the table has been found wrong: a server that it
	// names was not the owner.
	Refresh struct{}
)

func (Reply) lookupEvent()    {}
func (Redirect) lookupEvent() {}
func (Refused) lookupEvent()  {}
func (Failed) lookupEvent()   {}
func (Slept) lookupEvent()    {}
func (Refresh) lookupEvent()  {}

// An Action is something that the shell must do. Actions are done in order.
type Action interface{ lookupAction() }

type (
	// Send sends a request to one manager, or to all of them if To is empty. A later Send with the same
	// sequence number passes the request on to another manager.
	Send struct {
		To      storage.ManagerID
		Request *protocol.LookupRequest
	}

	// Unanswered reports that the managers that had the newest request have failed. The machine sends
	// another one later.
	Unanswered struct{}

	// Publish makes the table the one that keys are found in. Changes led to it
	// from the one before, or a Crossing did; there are none if it was taken over as a
	// whole. All are immutable.
	Publish struct {
		Table    *table.Table
		Changes  []table.Change
		Crossing *table.Crossing
	}

	// Losses tells the application what state is gone, in order.
	Losses struct{ Losses []leasehold.Loss }

	// Contact says that contact is lost: no manager has proven for Config.Stale that
	// the table is complete. Losses may have happened that were not emitted. Or it
	// says that contact is restored: all losses up to now were emitted before. The
	// two alternate, and begin with a loss of contact. Age is for how long the table
	// was not known to be complete, at least.
	Contact struct {
		Lost bool
		Age  time.Duration
	}

	// Note tells the operator, and the counters, what happened and why.
	Note struct {
		What       Notable
		Have, Want uint64
	}
)

func (Send) lookupAction()       {}
func (Unanswered) lookupAction() {}
func (Publish) lookupAction()    {}
func (Losses) lookupAction()     {}
func (Contact) lookupAction()    {}
func (Note) lookupAction()       {}

// A Notable is something worth a line in a log.
type Notable uint8

// What a lookup may note.
const (
	NoteBadMessage   Notable = iota // a message that makes no sense was dropped
	NoteForeign                     // a message for another namespace was dropped
	NoteStaleTerm                   // a message of a deposed leader was dropped: Have its term, Want ours
	NoteGap                         // changes are missing: Have where the message starts, Want our lsn
	NoteOverlap                     // a message brought changes that we had: Have where it starts, Want our lsn
	NoteSnapshot                    // a snapshot was taken over: Have its lsn, Want ours
	NoteOldSnapshot                 // a snapshot older than our table was dropped
	NoteMixed                       // changes do not follow on our table: a snapshot is asked for
	NoteContactLost                 // contact is lost: Have the age of our knowledge, Want what it may be
	NoteContactBack                 // contact is restored: Have the age that our knowledge had
	NoteLeaderSilent                // no answer in time: all managers are asked
	NoteRefused                     // a leader will not serve us: Have the kind of error
	NoteSlept                       // our clock stood still: we cannot tell how old our knowledge is
	notables
)

var notableNames = [notables]string{
	"bad message", "foreign message", "stale term", "gap", "overlap", "snapshot", "old snapshot", "mixed history",
	"contact lost", "contact back", "leader silent", "refused", "slept",
}

func (n Notable) String() string { return notableNames[n] }

// Notables returns how many there are: they number from 0.
func Notables() int { return int(notables) }
