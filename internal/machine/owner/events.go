package owner

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/table"
)

// An Event is something that happens to an owner.
type Event interface{ ownerEvent() }

type (
	// Reply is a message from a manager that says it leads.
	Reply struct{ *protocol.LeaseReply }

	// Redirect is a message from a manager that does not lead.
	Redirect struct{ protocol.NotLeader }

	// HungUp says that the connection to a manager has broken. It is a hint: if
	// that was the leader, there is no use in waiting for its answer.
	HungUp struct{ Manager storage.ManagerID }

	// Refused says that a leader will not serve us: there is no such namespace,
	// for instance. It may change its mind. What we hold is not touched by it.
	Refused struct{ Kind leasehold.Kind }

	// Slept says that the machine's clock may have stood still while others
	// ran on: the computer was suspended.
	Slept struct{}

	// PredecessorGone answers [FindPredecessor]: its process no longer exists.
	PredecessorGone struct{ Session leasehold.Session }

	// Leave asks for all leases to be given back.
	Leave struct{}
)

func (Reply) ownerEvent()           {}
func (Redirect) ownerEvent()        {}
func (HungUp) ownerEvent()          {}
func (Refused) ownerEvent()         {}
func (Slept) ownerEvent()           {}
func (PredecessorGone) ownerEvent() {}
func (Leave) ownerEvent()           {}

// An Action is something that the shell must do. Actions are done in order.
type Action interface{ ownerAction() }

type (
	// Send sends a request to one manager, or to all of them if To is empty.
	Send struct {
		To      storage.ManagerID
		Request *protocol.LeaseRequest
	}

	// Publish makes the view the one that checks are made against.
	Publish struct{ View *View }

	// GrantedLeases tells the application what it now has.
	GrantedLeases struct{ Leases []leasehold.Lease }

	// RevokedLeases tells the application what it no longer has.
	RevokedLeases struct {
		Leases []leasehold.Lease
		Cause  leasehold.Cause
	}

	// FindPredecessor asks whether the process of another session with our
	// name still exists on this machine.
	FindPredecessor struct{ Incumbent *table.Holder }

	// Left says that the leader knows that we are gone.
	Left struct{}

	// Note tells the operator, and the counters, what happened and why.
	Note struct {
		What Notable
		// Have and Want say what was compared, where that explains it.
		Have, Want uint64
	}
)

func (Send) ownerAction()            {}
func (Publish) ownerAction()         {}
func (GrantedLeases) ownerAction()   {}
func (RevokedLeases) ownerAction()   {}
func (FindPredecessor) ownerAction() {}
func (Left) ownerAction()            {}
func (Note) ownerAction()            {}

// A Notable is something worth a line in a log.
type Notable uint8

// What an owner may note.
const (
	NoteBadMessage   Notable = iota // a message that makes no sense was dropped
	NoteForeign                     // a message for another session or namespace was dropped
	NoteStaleTerm                   // a message of a deposed leader was dropped: Have its term, Want ours
	NoteDuplicate                   // a message heard before was dropped: Have its number, Want a newer one than that
	NoteRace                        // a message crossed one of ours and was dropped: Have its echo, Want our newest
	NoteNewTerm                     // a new leader was heard: Have its term
	NoteLate                        // a reply came after the leases it renews had ended
	NoteRefused                     // a renewal of a lease that we do not hold was refused: Have its generation
	NoteOldGrant                    // a fresh offer of a generation that is not new was refused: Have it, Want newer than that
	NoteExpired                     // leases ended because no reply came in time
	NoteSlept                       // leases were dropped because the clock stood still
	NoteClockSlow                   // leases were dropped because our clock runs too slowly: Have the leader's time, Want ours, in ns
	NoteNameTaken                   // another session has our name: we wait
	NoteContender                   // another session wants our name
	NoteLeaderSilent                // no answer in time: all managers are asked
	NoteServerRefuse                // the leader cannot serve us: Have the kind of error
	notables
)

var notableNames = [notables]string{
	"bad message", "foreign message", "stale term", "duplicate", "race", "new term", "late reply", "renewal refused",
	"old grant refused", "expired", "slept", "clock too slow", "name taken", "contender", "leader silent", "refused by leader",
}

func (n Notable) String() string { return notableNames[n] }

// Notables returns how many there are: they number from 0.
func Notables() int { return int(notables) }
