package transcript

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	lookupmachine "github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	ownermachine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
)

// What machines note is printed as the rest of a sentence that starts with the
// process's name. Notes without a sentence of their own are named.

func ownerNote(n ownermachine.Note) string {
	switch n.What {
	case ownermachine.NoteForeign:
		return "drops it: it is for another session"
	case ownermachine.NoteStaleTerm:
		return fmt.Sprintf("drops it: term %d is over, since the leader of term %d was heard", n.Term, n.OwnTerm)
	case ownermachine.NoteDuplicate:
		return fmt.Sprintf("drops it: %d is not newer than %d, which it has heard", n.Seq, n.NewestSeq)
	case ownermachine.NoteRace:
		return fmt.Sprintf("drops it as a race: it reflects %d, and %d has been sent", n.Seq, n.NewestSeq)
	case ownermachine.NoteNewTerm:
		return fmt.Sprintf("hears the leader of term %d", n.Term)
	case ownermachine.NoteLate:
		return "gains nothing: the time of these leases is over"
	case ownermachine.NoteRefused:
		return fmt.Sprintf("refuses to renew generation %d, which it does not hold", n.Generation)
	case ownermachine.NoteSuspended:
		return "has had no answer in time: its leases are suspended"
	case ownermachine.NoteResumed:
		return "resumes its leases under the same generations"
	case ownermachine.NoteSlept:
		return "finds that its clock stood still"
	case ownermachine.NoteClockSlow:
		return fmt.Sprintf("finds its clock too slow: %s passed here while %s passed at the leader",
			seconds(n.Elapsed), seconds(n.LeaderElapsed))
	case ownermachine.NoteNameTaken:
		return "waits: another session has its name"
	case ownermachine.NoteContender:
		return "notes that another session wants its name"
	case ownermachine.NoteLeaderSilent:
		return "has no answer, and asks all managers"
	case ownermachine.NoteMoveImpossible:
		return "cannot send that"
	case ownermachine.NoteMoveCancelled:
		return "need not send it any more: what it has stopped it serves again"
	case ownermachine.NoteMoveFailed:
		return "gives up, and serves the range as before"
	case ownermachine.NoteNoState:
		return fmt.Sprintf("refuses generation %d: its state is not here", n.Generation)
	case ownermachine.NoteUnproven:
		return "can no longer prove to whom it has handed over"
	case ownermachine.NoteImportFailed:
		return fmt.Sprintf("lets go of generation %d: its state is not in its place, and never will be", n.Generation)
	default:
		return fmt.Sprintf("notes: %v", n.What)
	}
}

func managerNote(n machine.Note) string {
	switch n.What {
	case machine.NoteDuplicate:
		return fmt.Sprintf("drops it: %d is not newer than %d", n.Seq, n.NewestSeq)
	case machine.NoteRace:
		return fmt.Sprintf("drops it as a race: it reflects %d, and %d has been sent", n.Seq, n.NewestSeq)
	case machine.NoteNoAuthority:
		return "says nothing: its time as leader is over"
	case machine.NoteHello:
		return fmt.Sprintf("hears of %s for the first time", n.Owner)
	case machine.NoteJoined:
		return fmt.Sprintf("has been heard by %s, which is a member from now on", n.Owner)
	case machine.NoteExpired:
		return fmt.Sprintf("has waited for %s long enough: its leases are over (%d)", n.Owner, n.Leases)
	case machine.NoteLeft:
		return fmt.Sprintf("takes back what %s left behind (%d)", n.Owner, n.Leases)
	case machine.NoteReleased:
		return fmt.Sprintf("has generation %d back from %s", n.Generation, n.Owner)
	case machine.NoteRefused:
		return fmt.Sprintf("learns that %s does not have generation %d", n.Owner, n.Generation)
	case machine.NoteGrantPending:
		return fmt.Sprintf("learns that generation %d has not reached %s yet", n.Generation, n.Owner)
	case machine.NoteGrantOrphaned:
		return fmt.Sprintf("has granted generation %d to a session of %s that is gone", n.Generation, n.Owner)
	case machine.NoteNameTaken:
		return fmt.Sprintf("lets the newcomer wait: the name %s is taken", n.Owner)
	case machine.NoteSuccessor:
		return fmt.Sprintf("gives the name %s to the session that waited", n.Owner)
	case machine.NotePredecessor:
		return fmt.Sprintf("takes the word of the newcomer that the %s before it is gone", n.Owner)
	case machine.NoteCommitUnknown:
		return "asks where the log ends, before it decides anything else"
	case machine.NoteCommitFound:
		return fmt.Sprintf("finds its batch in the log, which ends at LSN %d", n.LSN)
	case machine.NoteCommitRetry:
		return "finds its batch missing, and sends the very same again"
	case machine.NoteSnapshot:
		return fmt.Sprintf("answers LSN %d with a snapshot", n.LSN)
	case machine.NoteTakeoverRenews:
		return fmt.Sprintf("renews what it inherited of %s (%d)", n.Owner, n.Leases)
	case machine.NoteMoveBegun:
		return fmt.Sprintf("wants %s to send state", n.Owner)
	case machine.NoteMoveDone:
		return fmt.Sprintf("learns that %s has sent all of the state to %s", n.Owner, n.To)
	case machine.NoteMoved:
		return fmt.Sprintf("learns that %s has let go of generation %d, whose state is with another", n.Owner, n.Generation)
	case machine.NoteMoveFailed:
		return fmt.Sprintf("learns that %s has given up a move", n.Owner)
	case machine.NoteMoveTimeout:
		return fmt.Sprintf("has waited long enough for %s to get on with a move", n.Owner)
	case machine.NoteMoveCancelled:
		return fmt.Sprintf("no longer wants %s to send state", n.Owner)
	case machine.NoteTargetGone:
		return fmt.Sprintf("knows that whoever has the state of %s is gone", n.Owner)
	case machine.NoteParting:
		return fmt.Sprintf("hears that %s wants to leave (%d)", n.Owner, n.Leases)
	case machine.NoteDraining:
		if !n.Draining {
			return fmt.Sprintf("lets %s take part again", n.Owner)
		}
		return fmt.Sprintf("is to drain %s (%d)", n.Owner, n.Leases)
	default:
		return "notes: " + n.What.String()
	}
}

func lookupNote(n lookupmachine.Note) string {
	switch n.What {
	case lookupmachine.NoteStaleTerm:
		return fmt.Sprintf("drops it: term %d is over, since the leader of term %d was heard", n.Term, n.OwnTerm)
	case lookupmachine.NoteGap:
		return fmt.Sprintf("misses changes: these follow on LSN %d, and it is at %d", n.LSN, n.OwnLSN)
	case lookupmachine.NoteOverlap:
		return fmt.Sprintf("has some of these changes already: they follow on LSN %d, and it is at %d", n.LSN, n.OwnLSN)
	case lookupmachine.NoteSnapshot:
		return fmt.Sprintf("compares the snapshot at LSN %d with its table at %d", n.LSN, n.OwnLSN)
	case lookupmachine.NoteOldSnapshot:
		return fmt.Sprintf("drops it: a snapshot at LSN %d is no news at %d", n.LSN, n.OwnLSN)
	case lookupmachine.NoteContactLost:
		return fmt.Sprintf("has known nothing for certain for %s", seconds(n.Age))
	case lookupmachine.NoteContactBack:
		return "is certain again"
	case lookupmachine.NoteSlept:
		return "finds that its clock stood still"
	case lookupmachine.NoteLeaderSilent:
		return "has no answer, and asks all managers"
	default:
		return fmt.Sprintf("notes: %v", n.What)
	}
}

func electionNote(n byrecord.Note) string {
	switch n.What {
	case byrecord.NoteTakeover:
		return fmt.Sprintf("has seen the leader's record stand still for %s", seconds(n.Elapsed))
	case byrecord.NoteResignedSeen:
		return fmt.Sprintf("sees that the leader of term %d has resigned", n.Term)
	case byrecord.NoteElected, byrecord.NoteOldRecord:
		return "" // what follows says it
	case byrecord.NoteSlept:
		return "finds that its clock stood still"
	case byrecord.NoteUncertain:
		return "cannot exclude that the store was restored"
	case byrecord.NoteOwnRecord:
		return fmt.Sprintf("finds its own record of term %d, in which it has stepped down", n.Term)
	case byrecord.NoteBeaten:
		return "did not get its record in: another one is there"
	case byrecord.NoteSwapUnknown:
		return "does not know whether its record was written"
	case byrecord.NoteResigning:
		return "resigns"
	case byrecord.NoteLapsed:
		return "could not renew its record in time, and falls silent"
	case byrecord.NoteDeposed:
		return fmt.Sprintf("finds the record of term %d", n.Term)
	default:
		return fmt.Sprintf("notes: %v", n.What)
	}
}

func named(what fmt.Stringer, have, want uint64) string {
	if have == 0 && want == 0 {
		return fmt.Sprintf("notes: %v", what)
	}
	return fmt.Sprintf("notes: %v (%d, %d)", what, have, want)
}
