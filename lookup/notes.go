package lookup

import (
	"context"
	"log/slog"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
)

// log writes what the machine noted as a line that says why.
func (f *follower) log(n machine.Note) {
	level, text, attrs := describe(n)
	logger := f.lookup.cfg.Logger
	attrs = append([]any{"namespace", f.lookup.cfg.Namespace}, attrs...)
	logger.Log(context.Background(), level, text, attrs...)
}

// describe says what a note means. Warnings are for what an operator may have
// to look into; what mends itself is debug.
func describe(n machine.Note) (slog.Level, string, []any) {
	switch n.What {
	case machine.NoteBadMessage:
		return slog.LevelWarn, "message dropped: it makes no sense", []any{"term", n.Term, "lsn", n.LSN}
	case machine.NoteForeign:
		return slog.LevelWarn, "message dropped: it is for another namespace", nil
	case machine.NoteStaleTerm:
		return slog.LevelDebug, "message dropped: its leader has been superseded", []any{"term", n.Term, "ownTerm", n.OwnTerm}
	case machine.NoteGap:
		return slog.LevelDebug, "changes are missing: asking for them", []any{"lsn", n.LSN, "ownLSN", n.OwnLSN}
	case machine.NoteOverlap:
		return slog.LevelDebug, "changes came again", []any{"lsn", n.LSN, "ownLSN", n.OwnLSN}
	case machine.NoteSnapshot:
		return slog.LevelDebug, "the table came as a whole", []any{"lsn", n.LSN, "ownLSN", n.OwnLSN}
	case machine.NoteOldSnapshot:
		return slog.LevelDebug, "table dropped: it is not newer than ours", []any{"lsn", n.LSN, "ownLSN", n.OwnLSN}
	case machine.NoteMixed:
		return slog.LevelWarn, "changes do not follow on our table: asking for the whole", []any{"lsn", n.LSN, "ownLSN", n.OwnLSN}
	case machine.NoteContactLost:
		return slog.LevelWarn, "contact lost: no manager has confirmed the table, and losses may be unknown",
			[]any{"age", n.Age, "maxAge", n.MaxAge}
	case machine.NoteContactBack:
		return slog.LevelInfo, "contact restored: all losses up to now are reported", []any{"age", n.Age}
	case machine.NoteLeaderSilent:
		return slog.LevelDebug, "the manager does not answer: asking the others", []any{"misses", n.Misses}
	case machine.NoteRefused:
		return slog.LevelWarn, "no manager will serve us", []any{"kind", n.Kind}
	case machine.NoteSlept:
		return slog.LevelWarn, "this computer was suspended: how old the table is cannot be told", nil
	default:
		return slog.LevelDebug, n.What.String(), nil
	}
}
