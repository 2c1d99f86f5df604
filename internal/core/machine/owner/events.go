package owner

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
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

	// Part asks for all leases to be moved away, as the step before Leave.
	// [Parted] says when nothing is left that could be.
	Part struct{}

	// Leave asks for all leases to be given back.
	Leave struct{}

	// Copied says that the state of a departing range has been sent, but for
	// what changes from now on. [Stop] answers, or [EndMove].
	Copied struct{ Ticket protocol.Ticket }

	// Confirmed says that the target of a move has all of the state.
	Confirmed struct{ Ticket protocol.Ticket }

	// GaveUp says that a move has failed at the source: the target was not
	// reached or refuses, or the application failed, or took too long.
	GaveUp struct{ Ticket protocol.Ticket }

	// Imported says that all state of an arriving range is here. [Confirm]
	// answers, or [Discard].
	Imported struct{ Ticket protocol.Ticket }

	// Installed answers [Install]: the application has put the state in its
	// place or, if Failed, it has not and never will.
	Installed struct {
		Ticket protocol.Ticket
		Failed bool
	}

	// Settled answers [Settle]: nobody relies any more on what was published
	// before.
	Settled struct{ Number uint64 }
)

func (Reply) ownerEvent()           {}
func (Redirect) ownerEvent()        {}
func (HungUp) ownerEvent()          {}
func (Refused) ownerEvent()         {}
func (Slept) ownerEvent()           {}
func (PredecessorGone) ownerEvent() {}
func (Part) ownerEvent()            {}
func (Leave) ownerEvent()           {}
func (Copied) ownerEvent()          {}
func (Confirmed) ownerEvent()       {}
func (GaveUp) ownerEvent()          {}
func (Imported) ownerEvent()        {}
func (Installed) ownerEvent()       {}
func (Settled) ownerEvent()         {}

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

	// RevokedLeases tells the application what it no longer has: also what it was
	// to put the state of in its place, and may have.
	RevokedLeases struct {
		Leases []leasehold.Lease
		Cause  leasehold.Cause
	}

	// SuspendedLeases tells the application that the leases have reached their deadline
	// without an answer from a leader. Checks fail, and the state is to be kept:
	// [ResumedLeases] or [RevokedLeases] follows.
	SuspendedLeases struct{ Leases []leasehold.Lease }

	// ResumedLeases tells the application that suspended leases are renewed under the same
	// generation: no other owner has held them in between.
	ResumedLeases struct{ Leases []leasehold.Lease }

	// FindPredecessor asks whether the process of another session with our
	// name still exists on this machine.
	FindPredecessor struct{ Incumbent *table.Holder }

	// StartMove begins to send the state of a range, while it is still served.
	// The shell answers with [Copied] or [GaveUp].
	StartMove struct{ protocol.Departure }

	// Stop says that no check of the departing range succeeds any more: what is
	// read from now on is the last. The shell answers with [Confirmed] or
	// [GaveUp].
	Stop struct{ Ticket protocol.Ticket }

	// EndMove says that nobody cares for a departure any more: it is done, or
	// was given up by one of the three.
	EndMove struct{ Ticket protocol.Ticket }

	// Expect lets the state of a range in, from whoever has the ticket. The
	// shell answers with [Imported]; if it cannot, it lets the source know.
	Expect struct{ protocol.Arrival }

	// Confirm tells the source that all of the state is here.
	Confirm struct{ Ticket protocol.Ticket }

	// Install makes the application put the state that came under the ticket in
	// its place: it has the lease, and checks will succeed as soon as the shell
	// has answered with [Installed].
	Install struct {
		Ticket protocol.Ticket
		Lease  leasehold.Lease
	}

	// Discard says that what came, or is to come, under the ticket is of no use.
	Discard struct{ Ticket protocol.Ticket }

	// Settle asks to be told, with [Settled] and the number, when nobody relies
	// any more on leases that the last view no longer has. Until then nothing is
	// sent. It is only for owners that make promises.
	Settle struct{ Number uint64 }

	// Parted answers Part: nothing is held that could still be moved away.
	Parted struct{}

	// Left says that the leader knows that we are gone; or, Unheard, that no leader has said so in
	// as long as our leases last without us.
	Left struct{ Unheard bool }

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
func (SuspendedLeases) ownerAction() {}
func (ResumedLeases) ownerAction()   {}
func (FindPredecessor) ownerAction() {}
func (StartMove) ownerAction()       {}
func (Stop) ownerAction()            {}
func (EndMove) ownerAction()         {}
func (Expect) ownerAction()          {}
func (Confirm) ownerAction()         {}
func (Install) ownerAction()         {}
func (Discard) ownerAction()         {}
func (Settle) ownerAction()          {}
func (Parted) ownerAction()          {}
func (Left) ownerAction()            {}
func (Note) ownerAction()            {}

// A Notable is something worth a line in a log.
type Notable uint8

// What an owner may note.
const (
	NoteBadMessage     Notable = iota // a message that makes no sense was dropped
	NoteForeign                       // a message for another session or namespace was dropped
	NoteStaleTerm                     // a message of a deposed leader was dropped: Have its term, Want ours
	NoteDuplicate                     // a message heard before was dropped: Have its number, Want a newer one than that
	NoteRace                          // a message crossed one of ours and was dropped: Have its echo, Want our newest
	NoteNewTerm                       // a new leader was heard: Have its term
	NoteLate                          // a reply came after the leases it renews had ended
	NoteRefused                       // a renewal of a lease that we do not hold was refused: Have its generation
	NoteOldGrant                      // a fresh offer of a generation that is not new was refused: Have it, Want newer than that
	NoteSuspended                     // leases were suspended because no reply came in time: Have how many
	NoteSlept                         // leases were dropped because the clock stood still
	NoteClockSlow                     // leases were dropped because our clock runs too slowly: Have the leader's time, Want ours, in ns
	NoteNameTaken                     // another session has our name: we wait
	NoteContender                     // another session wants our name
	NoteLeaderSilent                  // no answer in time: all managers are asked
	NoteServerRefuse                  // the leader cannot serve us: Have the kind of error
	NoteMoveImpossible                // the leader wants state moved that we cannot move
	NoteMoveCancelled                 // the leader no longer wants a move: Have how far it was
	NoteMoveFailed                    // a move was given up: the range is served here as before
	NoteNoState                       // a lease was refused because its state is not here: Have its generation
	NoteUnproven                      // our time has run out, and moves that are over cannot be proven to a new leader: Have how many
	NoteImportFailed                  // a lease was let go because its state could not be put in its place: Have its generation
	NoteResumed                       // suspended leases were renewed: Have how many
	NoteKeptTooLong                   // suspended leases were dropped after KeepSuspended: Have how many
	NoteNotResumed                    // suspended leases have ended, since the leader does not renew them: Have how many
	notables
)

var notableNames = [notables]string{
	"bad message", "foreign message", "stale term", "duplicate", "race", "new term", "late reply", "renewal refused",
	"old grant refused", "suspended", "slept", "clock too slow", "name taken", "contender", "leader silent", "refused by leader",
	"move impossible", "move cancelled", "move failed", "state missing", "unproven", "import failed", "resumed", "kept too long",
	"not resumed",
}

func (n Notable) String() string { return notableNames[n] }

// Notables returns how many there are: they number from 0.
func Notables() int { return int(notables) }
