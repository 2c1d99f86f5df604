package transcript

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	lookupmachine "github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	ownermachine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
)

// A note is printed as the rest of a sentence that starts with the name of the process. Other notes are
// printed with their name.

func ownerNote(n ownermachine.Note) string {
	switch n.What {
	case ownermachine.NoteForeign:
		return "drops it: another session"
	case ownermachine.NoteStaleTerm:
		return fmt.Sprintf("drops it: term %d is older than term %d", n.Term, n.OwnTerm)
	case ownermachine.NoteDuplicate:
		return fmt.Sprintf("drops it as a duplicate: %d is not newer than %d", n.Seq, n.NewestSeq)
	case ownermachine.NoteRace:
		return fmt.Sprintf("drops it as a race: it reflects %d, and %d has been sent", n.Seq, n.NewestSeq)
	case ownermachine.NoteNewTerm:
		return fmt.Sprintf("accepts the leader of term %d", n.Term)
	case ownermachine.NoteLate:
		return "drops it: these leases have expired"
	case ownermachine.NoteRefused:
		return fmt.Sprintf("refuses to renew generation %d, which it does not hold", n.Generation)
	case ownermachine.NoteSuspended:
		return "has no reply in time: its leases are suspended"
	case ownermachine.NoteResumed:
		return "resumes its leases under the same generations"
	case ownermachine.NoteSlept:
		return "detects that its clock stood still"
	case ownermachine.NoteClockSlow:
		return fmt.Sprintf("detects that its clock is too slow: %s here, %s at the leader",
			seconds(n.Elapsed), seconds(n.LeaderElapsed))
	case ownermachine.NoteNameTaken:
		return "waits: another session has its name"
	case ownermachine.NoteContender:
		return "is informed that another session requests its name"
	case ownermachine.NoteLeaderSilent:
		return "has no reply, and sends to all managers"
	case ownermachine.NoteMoveImpossible:
		return "cannot move that"
	case ownermachine.NoteMoveCancelled:
		return "aborts the move, and serves the range again"
	case ownermachine.NoteMoveFailed:
		return "aborts the move, and serves the range again"
	case ownermachine.NoteNoState:
		return fmt.Sprintf("refuses generation %d: it does not have the state", n.Generation)
	case ownermachine.NoteUnproven:
		return "cannot prove the target of its move any more"
	case ownermachine.NoteImportFailed:
		return fmt.Sprintf("drops generation %d: the state was not installed", n.Generation)
	default:
		return fmt.Sprintf("notes: %v", n.What)
	}
}

func managerNote(n machine.Note) string {
	switch n.What {
	case machine.NoteDuplicate:
		return fmt.Sprintf("drops it as a duplicate: %d is not newer than %d", n.Seq, n.NewestSeq)
	case machine.NoteRace:
		return fmt.Sprintf("drops it as a race: it reflects %d, and %d has been sent", n.Seq, n.NewestSeq)
	case machine.NoteNoAuthority:
		return "sends nothing: its authority has expired"
	case machine.NoteHello:
		return fmt.Sprintf("receives the first request of %s", n.Owner)
	case machine.NoteJoined:
		return fmt.Sprintf("adds %s as a member: it has received a reply", n.Owner)
	case machine.NoteExpired:
		return fmt.Sprintf("expires the leases of %s (%d)", n.Owner, n.Leases)
	case machine.NoteLeft:
		return fmt.Sprintf("frees the leases of %s (%d)", n.Owner, n.Leases)
	case machine.NoteReleased:
		return fmt.Sprintf("frees generation %d, released by %s", n.Generation, n.Owner)
	case machine.NoteRefused:
		return fmt.Sprintf("frees generation %[2]d, refused by %[1]s", n.Owner, n.Generation)
	case machine.NoteGrantPending:
		return fmt.Sprintf("repeats the grant of generation %d, which %s has not applied", n.Generation, n.Owner)
	case machine.NoteGrantOrphaned:
		return fmt.Sprintf("has granted generation %d to an ended session of %s", n.Generation, n.Owner)
	case machine.NoteNameTaken:
		return fmt.Sprintf("does not admit the new session: the name %s is taken", n.Owner)
	case machine.NoteSuccessor:
		return fmt.Sprintf("gives the name %s to the waiting session", n.Owner)
	case machine.NotePredecessor:
		return fmt.Sprintf("accepts the proof that the previous session of %s has ended", n.Owner)
	case machine.NoteCommitUnknown:
		return "reads the end of the log before any other decision"
	case machine.NoteCommitFound:
		return fmt.Sprintf("finds its batch in the log, which ends at LSN %d", n.LSN)
	case machine.NoteCommitRetry:
		return "does not find its batch in the log, and retries it"
	case machine.NoteSnapshot:
		return fmt.Sprintf("replies to LSN %d with a snapshot", n.LSN)
	case machine.NoteTakeoverRenews:
		return fmt.Sprintf("renews the inherited leases of %s (%d)", n.Owner, n.Leases)
	case machine.NoteMoveBegun:
		return fmt.Sprintf("starts a move from %s", n.Owner)
	case machine.NoteMoveDone:
		return fmt.Sprintf("is informed that %s has sent all state to %s", n.Owner, n.To)
	case machine.NoteMoved:
		return fmt.Sprintf("is informed that %s has released generation %d for its move", n.Owner, n.Generation)
	case machine.NoteMoveFailed:
		return fmt.Sprintf("is informed that %s has aborted a move", n.Owner)
	case machine.NoteMoveTimeout:
		return fmt.Sprintf("cancels a move without progress from %s", n.Owner)
	case machine.NoteMoveCancelled:
		return fmt.Sprintf("cancels a move from %s", n.Owner)
	case machine.NoteTargetGone:
		return fmt.Sprintf("detects that the target with the state of %s has ended", n.Owner)
	case machine.NoteParting:
		return fmt.Sprintf("is informed that %s is parting (%d)", n.Owner, n.Leases)
	case machine.NoteDraining:
		if !n.Draining {
			return fmt.Sprintf("ends the drain of %s", n.Owner)
		}
		return fmt.Sprintf("drains %s (%d)", n.Owner, n.Leases)
	default:
		return "notes: " + n.What.String()
	}
}

func lookupNote(n lookupmachine.Note) string {
	switch n.What {
	case lookupmachine.NoteStaleTerm:
		return fmt.Sprintf("drops it: term %d is older than term %d", n.Term, n.OwnTerm)
	case lookupmachine.NoteGap:
		return fmt.Sprintf("has a gap: these changes follow LSN %d, and it is at %d", n.LSN, n.OwnLSN)
	case lookupmachine.NoteOverlap:
		return fmt.Sprintf("skips duplicate changes: they follow LSN %d, and it is at %d", n.LSN, n.OwnLSN)
	case lookupmachine.NoteSnapshot:
		return fmt.Sprintf("compares the snapshot at LSN %d with its table at %d", n.LSN, n.OwnLSN)
	case lookupmachine.NoteOldSnapshot:
		return fmt.Sprintf("drops it: the snapshot at LSN %d is not newer than %d", n.LSN, n.OwnLSN)
	case lookupmachine.NoteContactLost:
		return fmt.Sprintf("has no proof of its table for %s", seconds(n.Age))
	case lookupmachine.NoteContactBack:
		return "has proof of its table again"
	case lookupmachine.NoteSlept:
		return "detects that its clock stood still"
	case lookupmachine.NoteLeaderSilent:
		return "has no reply, and sends to all managers"
	default:
		return fmt.Sprintf("notes: %v", n.What)
	}
}

func electionNote(n byrecord.Note) string {
	switch n.What {
	case byrecord.NoteTakeover:
		return fmt.Sprintf("detects that the leader's record has stood still for %s", seconds(n.Elapsed))
	case byrecord.NoteResignedSeen:
		return fmt.Sprintf("detects that the leader of term %d has resigned", n.Term)
	case byrecord.NoteElected, byrecord.NoteOldRecord:
		return "" // printed as a consequence
	case byrecord.NoteSlept:
		return "detects that its clock stood still"
	case byrecord.NoteUncertain:
		return "cannot exclude that the store was restored"
	case byrecord.NoteOwnRecord:
		return fmt.Sprintf("finds its own record of term %d, in which it has stepped down", n.Term)
	case byrecord.NoteBeaten:
		return "has a conflict: another record was written"
	case byrecord.NoteSwapUnknown:
		return "has an unknown outcome of the write of its record"
	case byrecord.NoteResigning:
		return "resigns"
	case byrecord.NoteLapsed:
		return "could not renew its record in time: its authority has expired"
	case byrecord.NoteDeposed:
		return fmt.Sprintf("finds the record of term %d", n.Term)
	default:
		return fmt.Sprintf("notes: %v", n.What)
	}
}
