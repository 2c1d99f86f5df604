package lookup

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// An Event is an input of the machine.
type Event interface{ lookupEvent() }

type (
	// Reply is a message of a manager with a table: a reply to a request, or a broadcast.
	Reply struct{ *protocol.LookupReply }

	// Redirect is the reply of a manager that does not lead and has no table.
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

	// Failed reports that a manager is unreachable, or that its reply is invalid.
	Failed struct{ From storage.ManagerID }

	// Slept reports that the computer was suspended: its clock may have stood still while the
	// clocks of other computers advanced.
	Slept struct{}

	// Refresh reports that the table is probably stale: a server in it did not own the
	// key.
	Refresh struct{}

	// Managers reports the current managers, in place of those of the configuration.
	Managers struct{ All []storage.ManagerID }
)

func (Reply) lookupEvent()    {}
func (Redirect) lookupEvent() {}
func (Refused) lookupEvent()  {}
func (Failed) lookupEvent()   {}
func (Slept) lookupEvent()    {}
func (Refresh) lookupEvent()  {}
func (Managers) lookupEvent() {}

// An Action is an output of the machine. The shell executes actions in order.
type Action interface{ lookupAction() }

type (
	// Send sends a request to one manager, or to all of them if To is empty. A later Send with the same
	// sequence number passes the request on to another manager.
	Send struct {
		To      storage.ManagerID
		Request *protocol.LookupRequest
	}

	// Unanswered reports that the managers that had the newest request have failed, and that there are no others. The
	// machine sends another one later.
	Unanswered struct{}

	// Publish replaces the table that lookups of keys use. Changes or a Crossing led from the previous
	// table to this one; both are empty after a snapshot. All are immutable.
	Publish struct {
		Table    *table.Table
		Changes  []table.Change
		Crossing *table.Crossing
	}

	// Losses notifies the application of lost state, in order.
	Losses struct{ Losses []leasehold.Loss }

	// Contact reports that contact is lost: no manager has proven for Config.Stale that the
	// table is complete, and losses may not have been emitted. Or it reports that contact is
	// restored: all losses up to now were emitted before. The two alternate, and the first one is
	// a loss of contact. Age is the least time for which the table was not known to be
	// complete.
	Contact struct {
		Lost bool
		Age  time.Duration
	}

	// Note is a line for the log and an event for the metrics.
	Note struct {
		What          Notable
		Term, OwnTerm leasehold.Term // of the message; the highest one received before it
		LSN, OwnLSN   leasehold.LSN  // of the message; of the lookup's table
		Age           time.Duration  // since the table was last known to be complete
		MaxAge        time.Duration  // Config.Stale
		Misses        int            // requests in a row without a reply
		Kind          leasehold.Kind
	}
)

func (Send) lookupAction()       {}
func (Unanswered) lookupAction() {}
func (Publish) lookupAction()    {}
func (Losses) lookupAction()     {}
func (Contact) lookupAction()    {}
func (Note) lookupAction()       {}

// A Notable is the kind of a note.
type Notable uint8

// The kinds of notes, and the fields that each sets.
const (
	NoteBadMessage   Notable = iota // invalid message dropped: LSN of a reply, Term of a redirect
	NoteForeign                     // reply for another namespace dropped
	NoteStaleTerm                   // reply of a deposed leader dropped: Term, OwnTerm
	NoteGap                         // changes are missing: LSN before the first change, OwnLSN
	NoteOverlap                     // some changes were applied before: LSN before the first change, OwnLSN
	NoteSnapshot                    // table replaced by a snapshot: LSN, OwnLSN
	NoteOldSnapshot                 // snapshot dropped, because the table is at least as new: LSN, OwnLSN
	NoteMixed                       // a change does not apply to the table, a snapshot is requested: LSN, OwnLSN
	NoteContactLost                 // contact lost: Age, MaxAge
	NoteContactBack                 // contact restored: Age
	NoteLeaderSilent                // no reply in time, the next request goes to all managers: Misses
	NoteRefused                     // the managers refuse to serve the lookup: Kind
	NoteSlept                       // the clock stood still: the age of the table is unknown
	notables
)

var notableNames = [notables]string{
	"bad message", "foreign message", "stale term", "gap", "overlap", "snapshot", "old snapshot", "mixed history",
	"contact lost", "contact back", "leader silent", "refused", "slept",
}

func (n Notable) String() string { return notableNames[n] }

// Notables returns the number of kinds. They are numbered from 0.
func Notables() int { return int(notables) }
