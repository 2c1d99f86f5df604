package lookup

import (
	"context"
	"log/slog"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
)

// log writes a note of the machine to the log.
func (f *follower) log(n machine.Note) {
	level, text, attrs := describe(n)
	if n.What == machine.NoteRefused && !f.lookup.hasTable() {
		level = slog.LevelDebug // Open returns the reason
	}
	logger := f.lookup.cfg.Logger
	attrs = append([]any{"namespace", f.lookup.cfg.Namespace}, attrs...)
	logger.Log(context.Background(), level, text, attrs...)
}

// describe returns the level, message and attributes of a note. Warnings may need an
// operator; the machine recovers from debug events by itself.
func describe(n machine.Note) (slog.Level, string, []any) {
	switch n.What {
	case machine.NoteBadMessage:
		return slog.LevelWarn, "message dropped: invalid", []any{"term", n.Term, "lsn", n.LSN}
	case machine.NoteForeign:
		return slog.LevelWarn, "message dropped: it is for another namespace", nil
	case machine.NoteStaleTerm:
		return slog.LevelDebug, "message dropped: stale term", []any{"term", n.Term, "ownTerm", n.OwnTerm}
	case machine.NoteGap:
		return slog.LevelDebug, "changes are missing: requesting them", []any{"lsn", n.LSN, "ownLSN", n.OwnLSN}
	case machine.NoteOverlap:
		return slog.LevelDebug, "duplicate changes skipped", []any{"lsn", n.LSN, "ownLSN", n.OwnLSN}
	case machine.NoteSnapshot:
		return slog.LevelDebug, "table replaced by a snapshot", []any{"lsn", n.LSN, "ownLSN", n.OwnLSN}
	case machine.NoteOldSnapshot:
		return slog.LevelDebug, "snapshot dropped: the table is at least as new", []any{"lsn", n.LSN, "ownLSN", n.OwnLSN}
	case machine.NoteMixed:
		return slog.LevelWarn, "changes do not apply to the table: requesting a snapshot", []any{"lsn", n.LSN, "ownLSN", n.OwnLSN}
	case machine.NoteContactLost:
		return slog.LevelWarn, "contact lost: no manager has confirmed the table, and losses may be unknown",
			[]any{"age", n.Age, "maxAge", n.MaxAge}
	case machine.NoteContactBack:
		return slog.LevelInfo, "contact restored: all losses up to now are reported", []any{"age", n.Age}
	case machine.NoteLeaderSilent:
		return slog.LevelDebug, "request timed out: retrying at all managers", []any{"misses", n.Misses}
	case machine.NoteRefused:
		return slog.LevelWarn, "managers refuse to serve this lookup", []any{"kind", n.Kind}
	case machine.NoteSlept:
		return slog.LevelWarn, "computer was suspended: the age of the table is unknown", nil
	default:
		return slog.LevelDebug, n.What.String(), nil
	}
}
