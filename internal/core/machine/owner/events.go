package owner

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// An Event is an input of the machine.
type Event interface{ ownerEvent() }

type (
	// Reply is a message of the leader: a reply to a request, or unsolicited.
	Reply struct{ *protocol.LeaseReply }

	// Redirect is the reply of a manager that does not lead.
	Redirect struct{ protocol.NotLeader }

	// Disconnected reports a broken connection to a manager. If that was the leader, the
	// owner does not wait for its reply.
	Disconnected struct{ Manager storage.ManagerID }

	// Refused is the refusal of a leader to serve the owner, because the namespace does not
	// exist, for instance. The owner keeps its leases, and a retry may succeed.
	Refused struct{ Kind leasehold.Kind }

	// Slept reports that the computer was suspended: its clock may have stood still while
	// the clocks of other computers advanced.
	Slept struct{}

	// PredecessorGone is the result of [FindPredecessor]: the process has ended.
	PredecessorGone struct{ Session leasehold.Session }

	// Part requests a move of all leases to other owners, before Leave. [Parted] follows when
	// no lease is left that can be moved.
	Part struct{}

	// Leave releases all leases and ends the session.
	Leave struct{}

	// Copied reports that the source has sent the state of a range, except for later changes.
	// [Stop] or [EndMove] follows.
	Copied struct{ Ticket protocol.Ticket }

	// Confirmed reports that the target of a move has received all of the state.
	Confirmed struct{ Ticket protocol.Ticket }

	// GaveUp reports that a move has failed at the source: the target was unreachable or
	// refused, or the application failed or exceeded its time limit.
	GaveUp struct{ Ticket protocol.Ticket }

	// Imported reports that the target has received all state of a range. [Confirm] or
	// [Discard] follows.
	Imported struct{ Ticket protocol.Ticket }

	// Installed is the result of [Install]: the application serves from the state or, if
	// Failed, cannot use it.
	Installed struct {
		Ticket protocol.Ticket
		Failed bool
	}

	// Settled is the result of [Settle]: all promises that were based on earlier views have
	// ended.
	Settled struct{ Number uint64 }
)

func (Reply) ownerEvent()           {}
func (Redirect) ownerEvent()        {}
func (Disconnected) ownerEvent()    {}
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

// An Action is an output of the machine. The shell executes actions in order.
type Action interface{ ownerAction() }

type (
	// Send sends a request to one manager, or to all of them if To is empty.
	Send struct {
		To      storage.ManagerID
		Request *protocol.LeaseRequest
	}

	// Publish replaces the view that checks use.
	Publish struct{ View *View }

	// GrantedLeases notifies the application of new leases.
	GrantedLeases struct{ Leases []leasehold.Lease }

	// RevokedLeases notifies the application of leases that have ended. They include leases
	// whose state it was installing.
	RevokedLeases struct {
		Leases []leasehold.Lease
		Cause  leasehold.Cause
	}

	// SuspendedLeases notifies the application that the leases have reached their deadline
	// without a reply from a leader. Checks fail, and the application keeps its state until
	// [ResumedLeases] or [RevokedLeases] follows.
	SuspendedLeases struct{ Leases []leasehold.Lease }

	// ResumedLeases notifies the application that suspended leases are renewed under the same
	// generation: no other owner has held them in between.
	ResumedLeases struct{ Leases []leasehold.Lease }

	// Joined reports that the leader counts this owner among the members: it has processed a request
	// that acknowledges one of its replies. It follows again after [FindPredecessor].
	Joined struct{ Term leasehold.Term }

	// FindPredecessor checks whether the process of another session of the same name still
	// runs on this computer.
	FindPredecessor struct{ Incumbent *table.Holder }

	// StartMove starts sending the state of a range, which is still served. The result is
	// [Copied] or [GaveUp].
	StartMove struct{ protocol.Departure }

	// Stop reports that all checks of the range fail at the source, so its state is final. The
	// result is [Confirmed] or [GaveUp].
	Stop struct{ Ticket protocol.Ticket }

	// EndMove ends a move at the source: it is done, has failed, or was cancelled.
	EndMove struct{ Ticket protocol.Ticket }

	// Expect accepts the state of a range from the source that presents the ticket. The result
	// is [Imported]; on failure the shell informs the source.
	Expect struct{ protocol.Arrival }

	// Confirm acknowledges to the source that the target has all of the state.
	Confirm struct{ Ticket protocol.Ticket }

	// Install passes the state that arrived under the ticket to the application. The lease is
	// granted, and checks succeed after [Installed].
	Install struct {
		Ticket protocol.Ticket
		Lease  leasehold.Lease
	}

	// Discard drops state that has arrived or will arrive under the ticket.
	Discard struct{ Ticket protocol.Ticket }

	// Settle requests [Settled] with the number when no promise is left on leases that the last
	// view does not have. Until then the machine sends no request. Only with Config.Promises.
	Settle struct{ Number uint64 }

	// Parted is the result of Part: no lease is left that can be moved.
	Parted struct{}

	// Left ends the session. The leader has acknowledged that or, if Unacknowledged, no leader did so
	// before the leases expired at the leader.
	Left struct{ Unacknowledged bool }

	// Note is a line for the log and an event for the metrics.
	Note struct {
		What             Notable
		Term, OwnTerm    leasehold.Term // of the message; the highest one received before it
		Seq, NewestSeq   protocol.Seq
		Generation       leasehold.Generation // of the lease that the note is about
		NewestGeneration leasehold.Generation // the highest one ever installed
		Leases           int
		Moves            int
		MoveState        protocol.MoveState
		Misses           int           // requests in a row without a reply
		Late             time.Duration // how long after the deadline
		Elapsed          time.Duration // on the owner's clock
		LeaderElapsed    time.Duration // on the leader's clock, in the same time
		Kind             leasehold.Kind
	}
)

func (Send) ownerAction()            {}
func (Publish) ownerAction()         {}
func (GrantedLeases) ownerAction()   {}
func (RevokedLeases) ownerAction()   {}
func (SuspendedLeases) ownerAction() {}
func (ResumedLeases) ownerAction()   {}
func (Joined) ownerAction()          {}
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

// A Notable is the kind of a note.
type Notable uint8

// The kinds of notes, and the fields that each sets.
const (
	NoteBadMessage     Notable = iota // invalid message dropped: Term, Seq if it was a reply
	NoteForeign                       // reply for another session or namespace dropped: Term, Seq
	NoteStaleTerm                     // reply of a deposed leader dropped: Term, OwnTerm
	NoteDuplicate                     // duplicate or reordered reply dropped: Seq, NewestSeq
	NoteRace                          // reply dropped, because it does not answer the newest request: Seq of its request, NewestSeq
	NoteNewTerm                       // reply of a new leader: Term, OwnTerm
	NoteLate                          // reply after the deadline of the leases that it renews: Late
	NoteRefused                       // renewal of a lease that is not held rejected: Generation
	NoteOldGrant                      // grant of a generation that is not new rejected: Generation, NewestGeneration
	NoteSuspended                     // leases suspended, because no reply came before the deadline: Leases
	NoteSlept                         // leases dropped, because the clock stood still: Leases
	NoteClockSlow                     // leases dropped, because the owner's clock is too slow: Elapsed, LeaderElapsed
	NoteNameTaken                     // another session has the owner's name: this one waits
	NoteContender                     // another session waits for the owner's name
	NoteLeaderSilent                  // no reply in time, the next request goes to all managers: Misses
	NoteServerRefuse                  // the leader refuses to serve the owner: Kind
	NoteMoveImpossible                // the leader wants a move that the owner cannot do
	NoteMoveCancelled                 // the leader has cancelled a move: MoveState
	NoteMoveFailed                    // a move has failed at the source, which serves the range as before
	NoteNoState                       // grant rejected, because the state of the range has not arrived: Generation
	NoteUnproven                      // contact lost, and completed moves cannot be proven to a new leader: Moves
	NoteImportFailed                  // lease released, because the application could not install its state: Generation
	NoteResumed                       // suspended leases renewed: Leases
	NoteKeptTooLong                   // suspended leases dropped after KeepSuspended: Leases
	NoteNotResumed                    // suspended leases ended, because the leader does not renew them: Leases
	notables
)

var notableNames = [notables]string{
	"bad message", "foreign message", "stale term", "duplicate", "race", "new term", "late reply", "renewal refused",
	"old grant refused", "suspended", "slept", "clock too slow", "name taken", "contender", "leader silent", "refused by leader",
	"move impossible", "move cancelled", "move failed", "state missing", "unproven", "import failed", "resumed", "kept too long",
	"not resumed",
}

func (n Notable) String() string { return notableNames[n] }

// Notables returns the number of kinds. They are numbered from 0.
func Notables() int { return int(notables) }
