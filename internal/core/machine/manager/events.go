package manager

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// An Event is an input of the machine.
type Event interface{ managerEvent() }

type (
	// Request is a message from an owner.
	Request struct{ *protocol.LeaseRequest }

	// Lookup is a message from a lookup.
	Lookup struct{ *protocol.LookupRequest }

	// Authority extends the time for which this manager is the leader.
	Authority struct{ Until mono.Instant }

	// Committed is the result of [Commit].
	Committed struct{ Outcome storage.Outcome }

	// LogEnd is the result of [ReadEnd]. Err: the store did not answer.
	LogEnd struct {
		Term leasehold.Term
		LSN  leasehold.LSN
		Err  bool
	}

	// Floor raises the first LSN and generation after the gap, if the gap is not stored yet: another namespace has
	// evidence that leaders of the lost history have assigned numbers below it.
	Floor struct{ Number uint64 }

	// Reconfigured replaces the configuration by one that the store has and that was validated. Namespace, Self,
	// Rand and Takeover are ignored.
	Reconfigured struct{ Config Config }
)

func (Request) managerEvent()      {}
func (Lookup) managerEvent()       {}
func (Authority) managerEvent()    {}
func (Committed) managerEvent()    {}
func (LogEnd) managerEvent()       {}
func (Floor) managerEvent()        {}
func (Reconfigured) managerEvent() {}

// An Action is a task for the shell. Actions are executed in order.
type Action interface{ managerAction() }

type (
	// Send sends a reply to the session that it names, if that belongs to Owner. Without a connection the reply is
	// dropped.
	Send struct {
		Owner leasehold.OwnerID
		Reply *protocol.LeaseReply
	}

	// Answer sends a reply to one lookup.
	Answer struct {
		Lookup uint64
		Reply  *protocol.LookupReply
	}

	// Broadcast sends a reply to every connected lookup.
	Broadcast struct{ Reply *protocol.LookupReply }

	// Commit writes a batch; the shell returns [Committed].
	Commit struct{ Batch *storage.Batch }

	// ReadEnd reads, linearizably, the leader's term and the end of the log; the shell returns [LogEnd].
	ReadEnd struct{}

	// SaveSnapshot lets the store compact its log. It has no result.
	SaveSnapshot struct{ Snapshot *storage.Snapshot }

	// Outranked reports that a higher term than this leader's is required: an owner has it, or the store has lost
	// this term's writes.
	Outranked struct{ By leasehold.Term }

	// Deposed reports that another leader has taken over. The machine has ended.
	Deposed struct{ By leasehold.Term }

	// HistoryLost reports evidence that the store has lost history, in which numbers up to Newest were assigned.
	HistoryLost struct{ Newest uint64 }

	// Spent reports that the term has no more LSNs or generations (see [storage.First]): nothing changes before
	// the next term.
	Spent struct{}

	// Note reports an event for the log and the metrics. Owner is the owner that it concerns, if there is one; the
	// comments of the kinds list the other fields that are set.
	Note struct {
		What  Notable
		Owner leasehold.OwnerID

		Generation, NewestGeneration leasehold.Generation
		LSN, OwnLSN                  leasehold.LSN // LSN is that of the store or a lookup, OwnLSN that of this leader
		Term                         leasehold.Term
		Seq, NewestSeq               protocol.Seq
		Leases, Owners               int // counts
		Draining                     bool
		Err                          error

		// Of a move, whose source is Owner.
		To             leasehold.OwnerID
		Range          leasehold.Range
		Records, Bytes uint64 // sent
		Took           time.Duration
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
func (HistoryLost) managerAction()  {}
func (Spent) managerAction()        {}
func (Note) managerAction()         {}

// A Notable is the kind of a [Note].
type Notable uint8

// The kinds of notes. "Of a move" means To, Range, Records, Bytes and Took.
const (
	NoteBadMessage     Notable = iota // an invalid message was dropped: its Term and Seq
	NoteForeign                       // a message for another namespace, or in the session of another owner, was dropped
	NoteNoAuthority                   // a message was dropped: this leader's authority has expired
	NoteDuplicate                     // a duplicate request was dropped: its Seq, the NewestSeq accepted
	NoteRace                          // a request that crossed a reply was dropped: the Seq that it acknowledges, the NewestSeq sent
	NoteHello                         // the first request of a session
	NoteJoined                        // a session became a member
	NoteExpired                       // a session expired: its Leases
	NoteOutage                        // no owner is in contact; those past their deadline are kept, since no other could take their ranges: how many Owners
	NoteOutageOver                    // an owner is in contact again: the others have one lease time to return
	NoteLeft                          // a session left and released its Leases
	NoteReleased                      // a recalled lease was released: its Generation
	NoteRefused                       // a holder refused a lease that it does not have: its Generation
	NoteGrantPending                  // a grant was lost to a race and is sent again: its Generation
	NoteWithdrawn                     // a grant was withdrawn before it was offered: its Generation
	NoteGrantOrphaned                 // a grant was committed for a session that is gone: its Generation
	NoteNameTaken                     // a session waits for another session with its owner name
	NoteSuccessor                     // a waiting session got the owner name
	NotePredecessor                   // a waiting session proved that its predecessor is gone: the predecessor's Leases
	NoteFull                          // an owner was refused: the limit is reached with Owners
	NoteCommitUnknown                 // the outcome of a commit is unknown: the LSN before the batch, OwnLSN its last
	NoteCommitRetry                   // a batch of unknown outcome is not in the log and is sent again: the LSN of the log's end
	NoteCommitFound                   // a batch of unknown outcome is in the log: the LSN of the log's end
	NoteSnapshot                      // a lookup got a snapshot: its LSN, OwnLSN
	NoteLookupAhead                   // a lookup is ahead of the table: its LSN, OwnLSN
	NotePolicyRefused                 // the policy failed or its assignment is invalid, and the current one stays: Err
	NoteTakeoverRenews                // an owner reported leases from before this term: how many Leases
	NoteCompacted                     // adjacent leases of different generations are recalled, to be granted as one: how many Leases
	NoteMoveBegun                     // a move was ordered
	NoteMoved                         // state and lease went to another owner: the old Generation
	NoteMoveFailed                    // the source gave up: of a move
	NoteMoveTimeout                   // no progress for too long: of a move
	NoteMoveCancelled                 // the plan no longer has the move
	NoteTargetGone                    // the target of handed-over state is gone: the state is lost
	NoteParting                       // an owner asked to leave: its Leases
	NoteDraining                      // an operator started or ended the drain of an owner: Draining, its Leases
	NoteGhost                         // the stored table has leases of two sessions with one owner name
	NoteMoveDone                      // the target has the complete state: of a move
	NoteNoMover                       // a session that cannot move state became a member: how many Owners can
	NoteCopy                          // two processes use one session: the Seq that a request acknowledges, the NewestSeq acknowledged before
	NoteForgotten                     // an owner has a lease newer than the stored table: its Generation, the table's NewestGeneration
	NoteLogForgotten                  // the log ends elsewhere than in this leader's last write: the LSN of its end, OwnLSN
	NoteRebased                       // the table continues after a gap: the LSN before it, OwnLSN after it
	NoteDied                          // a session was proven dead: its Leases
	NoteDeathRefused                  // a death notice was refused: its token or its owner does not match
	NoteLate                          // a request of a session that was proven dead was refused: its Seq
	notables
)

var notableNames = [notables]string{
	"bad message", "foreign message", "no authority", "duplicate", "race", "hello", "joined", "expired", "outage", "outage over", "left",
	"released", "refused", "grant pending", "grant withdrawn", "grant orphaned", "name taken", "successor", "predecessor gone", "full",
	"commit unknown", "commit retried", "commit found", "snapshot sent", "lookup ahead", "policy refused", "takeover renews", "compacted",
	"move begun", "moved", "move failed", "move timed out", "move cancelled", "target gone", "parting", "draining", "ghost", "move done", "no mover",
	"copy", "history lost", "log lost", "rebased", "died", "death notice refused", "late message",
}

func (n Notable) String() string { return notableNames[n] }

// Notables returns the number of kinds, which count from 0.
func Notables() int { return int(notables) }
