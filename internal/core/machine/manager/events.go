package manager

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// An Event is something that happens to a leader.
type Event interface{ managerEvent() }

type (
	// Request is a message from an owner.
	Request struct{ *protocol.LeaseRequest }

	// Lookup is a message from a lookup.
	Lookup struct{ *protocol.LookupRequest }

	// Authority extends the time for which we are the leader.
	Authority struct{ Until mono.Instant }

	// Committed answers [Commit].
	Committed struct{ Outcome storage.Outcome }

	// LogEnd answers [ReadEnd]. Err says that the store did not answer.
	LogEnd struct {
		Term leasehold.Term
		LSN  leasehold.LSN
		Err  bool
	}

	// Reconfigured says that the store has another configuration for the
	// namespace, which has been checked. Its Namespace, Self and Rand do not
	// matter, nor does what it says about how the term began.
	Reconfigured struct{ Config Config }
)

func (Request) managerEvent()      {}
func (Lookup) managerEvent()       {}
func (Authority) managerEvent()    {}
func (Committed) managerEvent()    {}
func (LogEnd) managerEvent()       {}
func (Reconfigured) managerEvent() {}

// An Action is something that the shell must do. Actions are done in order.
type Action interface{ managerAction() }

type (
	// Send sends a reply to the session that it names, if that is the Owner's. If there
	// is no way to reach it the reply is dropped.
	Send struct {
		Owner leasehold.OwnerID
		Reply *protocol.LeaseReply
	}

	// Answer sends a reply to one lookup.
	Answer struct {
		Lookup uint64
		Reply  *protocol.LookupReply
	}

	// Broadcast sends a reply to every lookup that is connected.
	Broadcast struct{ Reply *protocol.LookupReply }

	// Commit writes a batch; the shell answers with [Committed].
	Commit struct{ Batch *storage.Batch }

	// ReadEnd reads, linearizably, the leader's term and where the log ends;
	// the shell answers with [LogEnd].
	ReadEnd struct{}

	// SaveSnapshot lets the store shorten its log. Nobody waits for it.
	SaveSnapshot struct{ Snapshot *storage.Snapshot }

	// Outranked says that an owner has heard of a leader with a higher term.
	Outranked struct{ By leasehold.Term }

	// Deposed says that another leader has taken over. The machine is over.
	Deposed struct{ By leasehold.Term }

	// Spent says that the term has no more numbers to give out (see
	// [storage.First]): nothing changes until there is another.
	Spent struct{}

	// Note tells the operator, and the counters, what happened and why.
	Note struct {
		What  Notable
		Owner leasehold.OwnerID
		// Have and Want say what was compared, where that explains it.
		Have, Want uint64
		Why        error // of NotePolicyRefused

		// Of a move that has ended: what was to go where, from Owner, and for how long
		// it was under way.
		To    leasehold.OwnerID
		Range leasehold.Range
		Took  time.Duration
	}
)

func (Send) managerAction()         {}
func (Answer) managerAction()       {}
func (Broadcast) managerAction()    {}
func (Commit) managerAction()       {}
func (ReadEnd) managerAction()      {}
func (SaveSnapshot) managerAction() {}
func (Outranked) managerAction()    {}
func (Deposed) managerAction()      {}
func (Spent) managerAction()        {}
func (Note) managerAction()         {}

// A Notable is something worth a line in a log.
type Notable uint8

// What a leader may note.
const (
	NoteBadMessage     Notable = iota // a message that makes no sense was dropped
	NoteForeign                       // a message for another namespace, or in the session of another owner, was dropped
	NoteNoAuthority                   // a message came while our time as leader had run out
	NoteDuplicate                     // a request heard before was dropped: Have its number, Want a newer one than that
	NoteRace                          // a request crossed one of our messages and was dropped: Have what it heard, Want our newest
	NoteHello                         // a session was heard for the first time
	NoteJoined                        // a session became a member
	NoteExpired                       // a member was silent for too long: Have its leases
	NoteOutage                        // all members are silent and are kept, since no other could take their ranges: Have how many
	NoteOutageOver                    // an owner is heard again after that: the others have the time of a lease to return
	NoteLeft                          // a member said goodbye
	NoteReleased                      // a recalled lease came back: Have its generation
	NoteRefused                       // a holder does not know its lease: Have its generation
	NoteGrantPending                  // a grant was lost to a race and is sent again: Have its generation
	NoteWithdrawn                     // a grant was taken back before it was offered: Have its generation
	NoteGrantOrphaned                 // a grant was committed for a session that is gone: Have its generation
	NoteNameTaken                     // a session waits for another one with its name
	NoteSuccessor                     // a waiting session got the name
	NotePredecessor                   // a waiting session proved that the one before it is gone
	NoteFull                          // an owner was refused: Have as many as allowed
	NoteCommitUnknown                 // the outcome of a commit is not known
	NoteCommitRetry                   // a batch was not in the log and is sent again
	NoteCommitFound                   // a batch of unknown outcome was in the log
	NoteSnapshot                      // a lookup got a snapshot: Have its lsn, Want ours
	NoteLookupAhead                   // a lookup knows more than we do: Have its lsn, Want ours
	NotePolicyRefused                 // the policy's assignment is not valid: the old one stays
	NoteTakeoverRenews                // a lease that we inherited was reported by its holder: Have how many
	NoteCompacted                     // leases of different generations side by side are recalled, to be one: Have how many
	NoteMoveBegun                     // an owner is to send state to another
	NoteMoved                         // state has gone to another owner with its lease: Have the old generation
	NoteMoveFailed                    // the source has given up a move: Have records sent, Want bytes
	NoteMoveTimeout                   // a move made no progress for too long: Have records sent, Want bytes
	NoteMoveCancelled                 // the plan no longer wants a move
	NoteTargetGone                    // the owner that the state was sent to is gone: it is lost
	NoteParting                       // an owner wants to leave: Have its leases
	NoteDraining                      // an operator wants an owner drained, Want 1, or no longer: Have its leases
	NoteGhost                         // an owner name has leases of two sessions in the stored table
	NoteMoveDone                      // the source has sent everything, and the target has it
	NoteNoMover                       // a session that cannot move state became a member: Have how many can
	NoteCopy                          // two processes speak in one session: Have what one of them has heard, Want what the other has
	NoteForgotten                     // an owner has a lease, or a lookup has heard of a change, that is newer than any in the table: Have its number, Want the newest
	NoteLogForgotten                  // the log ends where we have not left it, in our own term: Have where, Want where it was
	NoteRebased                       // the table goes on far above what may have been forgotten: Have from where on, Want where it was
	notables
)

var notableNames = [notables]string{
	"bad message", "foreign message", "no authority", "duplicate", "race", "hello", "joined", "expired", "outage", "outage over", "left",
	"released", "refused", "grant pending", "grant withdrawn", "grant orphaned", "name taken", "successor", "predecessor gone", "full",
	"commit unknown", "commit retried", "commit found", "snapshot sent", "lookup ahead", "policy refused", "takeover renews", "compacted",
	"move begun", "moved", "move failed", "move timed out", "move cancelled", "target gone", "parting", "draining", "ghost", "move done", "no mover",
	"copy", "forgotten", "log forgotten", "rebased",
}

func (n Notable) String() string { return notableNames[n] }

// Notables returns how many there are: they number from 0.
func Notables() int { return int(notables) }
