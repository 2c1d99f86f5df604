package owner

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// notes write what the machine notes into the log. What happens over and over,
// such as another process having our name, is said once a minute, and in
// between at debug. Every suspension is logged, and how it ends. They belong to
// the driver's goroutine.
type notes struct {
	logger *slog.Logger
	last   map[machine.Notable]mono.Instant
}

const repeatAfter = time.Minute

func (n *notes) write(now mono.Instant, note machine.Note) {
	level := levelOf(note.What)
	if last, said := n.last[note.What]; said && level > slog.LevelDebug && now.Sub(last) < repeatAfter && !ofSuspension(note.What) {
		level = slog.LevelDebug
	} else {
		if n.last == nil {
			n.last = make(map[machine.Notable]mono.Instant)
		}
		n.last[note.What] = now
	}
	if ctx := context.Background(); n.logger.Enabled(ctx, level) {
		n.logger.Log(ctx, level, explain(note))
	}
}

func ofSuspension(what machine.Notable) bool {
	return what == machine.NoteSuspended || what == machine.NoteResumed || what == machine.NoteNotResumed
}

func levelOf(what machine.Notable) slog.Level {
	switch what {
	case machine.NoteNewTerm, machine.NoteUnproven, machine.NoteResumed:
		return slog.LevelInfo
	case machine.NoteSuspended, machine.NoteSlept, machine.NoteClockSlow, machine.NoteNameTaken,
		machine.NoteContender, machine.NoteServerRefuse, machine.NoteBadMessage,
		machine.NoteNoState, machine.NoteImportFailed, machine.NoteKeptTooLong, machine.NoteNotResumed:
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}

// explain says what happened and why.
func explain(n machine.Note) string {
	switch n.What {
	case machine.NoteBadMessage:
		return fmt.Sprintf("message dropped: it makes no sense (term %d, sequence number %d)", n.Term, n.Seq)
	case machine.NoteForeign:
		return fmt.Sprintf("message dropped: it is for another session or namespace (term %d, sequence number %d)", n.Term, n.Seq)
	case machine.NoteStaleTerm:
		return fmt.Sprintf("message dropped: its leader's term %d is older than %d", n.Term, n.OwnTerm)
	case machine.NoteDuplicate:
		return fmt.Sprintf("message dropped: sequence number %d is not newer than %d", n.Seq, n.NewestSeq)
	case machine.NoteRace:
		return fmt.Sprintf("message dropped: it answers our message %d and has crossed our message %d", n.Seq, n.NewestSeq)
	case machine.NoteNewTerm:
		return fmt.Sprintf("new leader: term %d follows %d", n.Term, n.OwnTerm)
	case machine.NoteLate:
		return fmt.Sprintf("renewal rejected: the reply came %v after the deadline of the leases", n.Late)
	case machine.NoteRefused:
		return fmt.Sprintf("renewal refused: generation %d is not held here", n.Generation)
	case machine.NoteOldGrant:
		return fmt.Sprintf("grant refused: generation %d is not newer than %d", n.Generation, n.NewestGeneration)
	case machine.NoteSuspended:
		return fmt.Sprintf("%d leases suspended: no leader answered before their deadline; their state is kept", n.Leases)
	case machine.NoteResumed:
		return fmt.Sprintf("%d suspended leases resumed under the same generations", n.Leases)
	case machine.NoteNotResumed:
		return fmt.Sprintf("%d suspended leases ended: the leader's table does not have them any more, and their state is discarded", n.Leases)
	case machine.NoteKeptTooLong:
		return fmt.Sprintf("%d suspended leases dropped: KeepSuspended has passed", n.Leases)
	case machine.NoteSlept:
		return fmt.Sprintf("%d leases dropped: the computer was suspended, and its clock stood still", n.Leases)
	case machine.NoteClockSlow:
		return fmt.Sprintf("leases dropped: this computer's clock is too slow, it advanced by %v while the leader's advanced by %v", n.Elapsed, n.LeaderElapsed)
	case machine.NoteNameTaken:
		return "waiting: another process has this owner's name; stop it, or give this one another name"
	case machine.NoteContender:
		return "another process wants this owner's name; it waits as long as this one lives"
	case machine.NoteLeaderSilent:
		return fmt.Sprintf("the leader has not answered %d times in a row: asking all managers", n.Misses)
	case machine.NoteServerRefuse:
		return fmt.Sprintf("the leader does not serve this owner: %v", n.Kind)
	case machine.NoteMoveImpossible:
		return "a move is not possible: the range is not held here, or moves already"
	case machine.NoteMoveCancelled:
		return "a move was cancelled by the leader: the range stays here"
	case machine.NoteMoveFailed:
		return "a move has failed: the range is served here as before"
	case machine.NoteNoState:
		return fmt.Sprintf("grant refused: the state that generation %d comes with is not here", n.Generation)
	case machine.NoteUnproven:
		return fmt.Sprintf("%d ranges were being handed over when the time that a leader had given ran out: managers without a store may take their state for lost", n.Moves)
	case machine.NoteImportFailed:
		return fmt.Sprintf("lease given back: the state of generation %d could not be put in its place", n.Generation)
	}
	return n.What.String()
}
