package owner

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/plural"
)

// notes writes the machine's notes to the log. A repeated note,
// such as a taken name, is logged once a minute, and in
// between at debug. The start and end of every suspension is logged. It is only for
// the driver's goroutine.
type notes struct {
	logger *slog.Logger
	last   map[machine.Notable]mono.Instant
	// waiting: since waitingSince, this process waits for the owner's name.
	waiting      bool
	waitingSince mono.Instant
}

const repeatInterval = time.Minute

func (n *notes) write(now mono.Instant, note machine.Note) {
	level := levelOf(note.What)
	if last, logged := n.last[note.What]; logged && level > slog.LevelDebug && now.Sub(last) < repeatInterval && !ofSuspension(note.What) {
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

// nameTaken logs the wait for the owner's name. After a crash it is normal until the lease of the last process ends,
// which takes at most longest; a longer wait is a warning.
func (n *notes) nameTaken(now mono.Instant, longest time.Duration) {
	switch {
	case !n.waiting:
		n.waiting, n.waitingSince = true, now
		n.logger.Info(fmt.Sprintf("waiting for the owner's name: the lease of the process that had it last ends within %v", longest))
	case now.Sub(n.waitingSince) > longest:
		n.write(now, machine.Note{What: machine.NoteNameTaken})
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

// explain returns the message of a note.
func explain(n machine.Note) string {
	switch n.What {
	case machine.NoteBadMessage:
		return fmt.Sprintf("message dropped: invalid (term %d, sequence number %d)", n.Term, n.Seq)
	case machine.NoteForeign:
		return fmt.Sprintf("message dropped: it is for another session or namespace (term %d, sequence number %d)", n.Term, n.Seq)
	case machine.NoteStaleTerm:
		return fmt.Sprintf("message dropped: its leader's term %d is older than %d", n.Term, n.OwnTerm)
	case machine.NoteDuplicate:
		return fmt.Sprintf("message dropped: sequence number %d is not newer than %d", n.Seq, n.NewestSeq)
	case machine.NoteRace:
		return fmt.Sprintf("message dropped: it echoes request %d and has crossed request %d", n.Seq, n.NewestSeq)
	case machine.NoteNewTerm:
		return fmt.Sprintf("new leader: term %d follows %d", n.Term, n.OwnTerm)
	case machine.NoteLate:
		return fmt.Sprintf("renewal rejected: the reply came %v after the deadline of the leases", n.Late)
	case machine.NoteRefused:
		return fmt.Sprintf("renewal refused: generation %d is not held by this owner", n.Generation)
	case machine.NoteOldGrant:
		return fmt.Sprintf("grant refused: generation %d is not newer than %d", n.Generation, n.NewestGeneration)
	case machine.NoteSuspended:
		return fmt.Sprintf("%s suspended: no leader replied before the deadline; the state is kept", plural.Count(n.Leases, "lease"))
	case machine.NoteResumed:
		return fmt.Sprintf("%s resumed, with unchanged generations", plural.Count(n.Leases, "suspended lease"))
	case machine.NoteNotResumed:
		return fmt.Sprintf("%s ended: no longer in the leader's table, and the state is discarded", plural.Count(n.Leases, "suspended lease"))
	case machine.NoteKeptTooLong:
		return fmt.Sprintf("%s dropped: KeepSuspended has passed", plural.Count(n.Leases, "suspended lease"))
	case machine.NoteSlept:
		return fmt.Sprintf("%s dropped: the computer was suspended, and its clock stood still", plural.Count(n.Leases, "lease"))
	case machine.NoteClockSlow:
		return fmt.Sprintf("leases dropped: this computer's clock is too slow, it advanced by %v while the leader's advanced by %v", n.Elapsed, n.LeaderElapsed)
	case machine.NoteNameTaken:
		return "another running process has this owner's name: stop that process, or choose another name"
	case machine.NoteContender:
		return "another process with this owner's name is waiting until this process ends"
	case machine.NoteLeaderSilent:
		return fmt.Sprintf("%s to the leader timed out: retrying at all managers", plural.Count(n.Misses, "consecutive request"))
	case machine.NoteServerRefuse:
		return fmt.Sprintf("leader refuses to serve this owner: %v", n.Kind)
	case machine.NoteMoveImpossible:
		return "move refused: this owner does not hold the range, or the range is already moving"
	case machine.NoteMoveCancelled:
		return "move cancelled by the leader: this owner keeps the range"
	case machine.NoteMoveFailed:
		return "move failed: this owner serves the range as before"
	case machine.NoteNoState:
		return fmt.Sprintf("grant refused: the state of generation %d has not arrived", n.Generation)
	case machine.NoteUnproven:
		return fmt.Sprintf("%s in progress when the leases reached their deadline: managers without a store may report the state as lost", plural.Count(n.Moves, "move"))
	case machine.NoteImportFailed:
		return fmt.Sprintf("lease released: the state of generation %d could not be installed", n.Generation)
	}
	return n.What.String()
}
