package manager

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/plural"
)

// logElection logs a note of the election.
func (m *Manager) logElection(n byrecord.Note) {
	level, text := slog.LevelDebug, n.What.String()
	switch n.What {
	case byrecord.NoteTakeover:
		level, text = slog.LevelInfo, fmt.Sprintf("the leader is considered failed: its record has not changed for %v, the limit is %v", n.Elapsed, n.Limit)
	case byrecord.NoteResignedSeen:
		level, text = slog.LevelInfo, fmt.Sprintf("the leader of term %d has resigned", n.Term)
	case byrecord.NoteElected:
		text = fmt.Sprintf("elected in term %d", n.Term)
	case byrecord.NoteBeaten:
		text = fmt.Sprintf("lost the election: another manager has term %d, this one tried %d", n.Term, n.OwnTerm)
	case byrecord.NoteSwapUnknown:
		level, text = slog.LevelWarn, "the outcome of writing the leader record is unknown; it is read before any decision"
	case byrecord.NoteSwapFound:
		level, text = slog.LevelInfo, "the write of the leader record had taken effect"
	case byrecord.NoteSwapRetry:
		text = "the write of the leader record had no effect; it is retried"
	case byrecord.NoteLapsed:
		level, text = slog.LevelWarn, "leadership expired before it was renewed: no leases are granted or renewed until it is"
	case byrecord.NoteRegained:
		level, text = slog.LevelInfo, "leadership is renewed; no other manager had taken over"
	case byrecord.NoteDeposed:
		level, text = slog.LevelWarn, fmt.Sprintf("another manager leads in term %d; this one led in term %d", n.Term, n.OwnTerm)
	case byrecord.NoteResigning:
		level, text = slog.LevelInfo, "handing over leadership"
	case byrecord.NoteDismissed:
		level, text = slog.LevelWarn, fmt.Sprintf("the lease of leadership of term %d has ended: it expired before it was renewed, or was released", n.Term)
	case byrecord.NoteOutranked:
		level, text = slog.LevelWarn, fmt.Sprintf("another manager has seen term %d, above this one's term %d: this manager steps down for a term above both. Was the wall clock set back?", n.Term, n.OwnTerm)
	case byrecord.NoteDisbelieved:
		level, text = slog.LevelWarn, fmt.Sprintf("an owner has seen term %d, above this leader's term %d, and no manager has seen that term: it is ignored. If that server stays without keys, restart it", n.Term, n.OwnTerm)
	case byrecord.NoteForgotten:
		level, text = slog.LevelError, fmt.Sprintf("a leader of term %d existed, but the newest in the store is of term %d: was it restored from an old backup? The next term is above both", n.Term, n.StoreTerm)
	case byrecord.NoteUncertain:
		level, text = slog.LevelWarn, fmt.Sprintf("a restored store cannot be excluded: the leader record is %v old by wall clocks, and no running manager has seen it change. Suspended leases resume, and ranges are granted, after one lease x drift", n.Elapsed)
	case byrecord.NoteOldRecord:
		text = fmt.Sprintf("leader record ignored: version %d is older than %d", n.Version, n.NewestVersion)
	case byrecord.NoteSlept:
		level, text = slog.LevelWarn, "this computer was suspended: this manager steps down, since the remaining time of its leadership is unknown"
	case byrecord.NoteLimping:
		level, text = slog.LevelWarn, fmt.Sprintf("leader record renewed too late several times: the last write took %v, the TTL is %v; handing over leadership. Is the disk slow?", n.Elapsed, n.Limit)
	case byrecord.NoteFruitless:
		level, text = slog.LevelWarn, fmt.Sprintf("leader again, although writes of the leader record were too slow: no other manager led for long after %d handovers in a row", n.Resignations)
	case byrecord.NoteCopied:
		level, text = slog.LevelError, fmt.Sprintf("the leader record of term %d was written to another cluster, so this store was restored from a backup: suspended leases end, and LSNs and generations continue above all that may be lost", n.Term)
	case byrecord.NoteOwnRecord:
		text = "the leader record is this manager's own, from before it stepped down"
	}
	m.log.Log(context.Background(), level, text)
}

// logNamespace logs a note of a namespace's machine, and publishes it unless it is a debug message.
func (m *Manager) logNamespace(now mono.Instant, a managerproc.Manage, n machine.Note) {
	level, text := describe(n)
	if isPersistent(n.What) && !m.repeats.shouldLog(now, topicOf(a.Namespace, n), text) {
		level = slog.LevelDebug
	}
	if level > slog.LevelDebug {
		m.events.publishNote(a.Namespace, n.Owner, n.What.String(), text)
	}
	if !m.log.Enabled(context.Background(), level) {
		return
	}
	attrs := []slog.Attr{slog.String("namespace", string(a.Namespace))}
	if n.Owner != "" {
		attrs = append(attrs, slog.String("owner", string(n.Owner)))
	}
	if n.To != "" {
		attrs = append(attrs, slog.String("to", string(n.To)))
	}
	m.log.LogAttrs(context.Background(), level, text, attrs...)
}

// describe returns the level and the text of a note of a namespace's machine.
func describe(n machine.Note) (slog.Level, string) {
	const debug, info, warn = slog.LevelDebug, slog.LevelInfo, slog.LevelWarn
	switch n.What {
	case machine.NoteBadMessage:
		return warn, fmt.Sprintf("invalid message dropped: term %d, sequence number %d", n.Term, n.Seq)
	case machine.NoteForeign:
		return warn, "message dropped: its session is of another owner, or it is for another namespace"
	case machine.NoteNoAuthority:
		return debug, "message dropped: this manager's leadership has expired"
	case machine.NoteDuplicate:
		return debug, fmt.Sprintf("duplicate request dropped: sequence number %d, want above %d", n.Seq, n.NewestSeq)
	case machine.NoteRace:
		return debug, fmt.Sprintf("a request crossed a reply: it acknowledges %d, the newest is %d", n.Seq, n.NewestSeq)
	case machine.NoteCopy:
		return slog.LevelError, "two processes use one session of this owner: its computer was copied while it ran. At most one of them is renewed: stop one"
	case machine.NoteForgotten:
		return slog.LevelError, fmt.Sprintf("an owner has a lease of generation %d, and the newest in the store is %d: the store was restored from a backup. Suspended leases are not resumed, and the table continues at higher numbers", n.Generation, n.NewestGeneration)
	case machine.NoteLogForgotten:
		return slog.LevelError, fmt.Sprintf("the log in the store ends at LSN %d, and this leader has written %d: was it restored from an old backup? This manager steps down for a new term", n.LSN, n.OwnLSN)
	case machine.NoteRebased:
		return info, fmt.Sprintf("the table continues at LSN and generation %d, after %d: numbers that the store may have lost are not reused", n.OwnLSN, n.LSN)
	case machine.NoteHello:
		return info, "an owner connected"
	case machine.NoteJoined:
		return info, "an owner joined"
	case machine.NoteExpired:
		return warn, fmt.Sprintf("an owner was silent for longer than its lease: it failed, was partitioned, or there was no leader. %s expired", plural.Count(n.Leases, "lease"))
	case machine.NoteOutage:
		return warn, fmt.Sprintf("outage: %s silent for longer than a lease, and no other could take their ranges. Their leases are suspended, and stay in the table until an owner sends a request", plural.Count(n.Owners, "owner"))
	case machine.NoteOutageOver:
		return info, "end of the outage: an owner has sent a request, and suspended leases resume. Owners that are still silent have one lease to return"
	case machine.NoteLeft:
		return info, fmt.Sprintf("an owner left and returned %s", plural.Count(n.Leases, "lease"))
	case machine.NoteReleased:
		return debug, fmt.Sprintf("a recalled lease was returned: generation %d", n.Generation)
	case machine.NoteRefused:
		return info, fmt.Sprintf("an owner does not have its lease of generation %d: the range is granted under a new generation", n.Generation)
	case machine.NoteNameTaken:
		return info, "a second session requests this owner's name: it waits until the lease of the first ends"
	case machine.NoteSuccessor:
		return info, "a waiting process joined under its name"
	case machine.NotePredecessor:
		return info, fmt.Sprintf("a waiting process proved that its predecessor has ended: %s of the predecessor ended", plural.Count(n.Leases, "lease"))
	case machine.NoteDied:
		return warn, fmt.Sprintf("an owner died: a supervisor proved that its process has ended: %s of it ended", plural.Count(n.Leases, "lease"))
	case machine.NoteDeathRefused:
		return warn, "a death notice was refused: its token is not that of the session. Its sender is faulty, or tries to end the leases of a live owner"
	case machine.NoteLate:
		return info, fmt.Sprintf("a late request of a session that was proven dead was refused: sequence number %d", n.Seq)
	case machine.NoteFull:
		return warn, fmt.Sprintf("an owner was refused: the namespace has %d owners, the maximum", n.Owners)
	case machine.NoteCommitUnknown:
		return warn, fmt.Sprintf("the outcome of writing changes %d to %d is unknown; the log is read before any decision", n.LSN+1, n.OwnLSN)
	case machine.NoteCommitRetry:
		return info, fmt.Sprintf("the write of the changes had no effect: the log ends at %d, and the write is retried", n.LSN)
	case machine.NoteCommitFound:
		return info, fmt.Sprintf("the write of the changes had taken effect: the log ends at %d", n.LSN)
	case machine.NoteSnapshot:
		return debug, fmt.Sprintf("a lookup at LSN %d receives a snapshot at %d", n.LSN, n.OwnLSN)
	case machine.NoteLookupAhead:
		return warn, fmt.Sprintf("a lookup has LSN %d, and the table ends at %d: was the store restored from a backup?", n.LSN, n.OwnLSN)
	case machine.NotePolicyRefused:
		return warn, fmt.Sprintf("the policy failed, and the assignment stays: %v", n.Err)
	case machine.NoteTakeoverRenews:
		return info, fmt.Sprintf("an owner continues with %s under a new leader", plural.Count(n.Leases, "lease"))
	case machine.NoteCompacted:
		return info, fmt.Sprintf("%d adjacent leases are recalled, to be merged", n.Leases)
	case machine.NoteParting:
		return info, fmt.Sprintf("an owner leaves: %s to move first", plural.Count(n.Leases, "lease"))
	case machine.NoteNoMover:
		return warn, fmt.Sprintf("an owner joined without a Mover, and %d others have one: the state of ranges that move to it or from it is lost", n.Owners)
	default:
		return describeMove(n)
	}
}

// describeMove is describe for the notes of moves.
func describeMove(n machine.Note) (slog.Level, string) {
	const debug, warn = slog.LevelDebug, slog.LevelWarn
	switch n.What {
	case machine.NoteMoveBegun:
		return debug, "a move starts: an owner sends state to another"
	case machine.NoteMoveDone:
		return debug, fmt.Sprintf("the state of %v was moved to %s in %v", n.Range, n.To, n.Took)
	case machine.NoteMoved:
		return debug, fmt.Sprintf("state has moved to another owner: generation %d ended", n.Generation)
	case machine.NoteMoveFailed:
		return warn, fmt.Sprintf("the state of %v could not be moved to %s: the source cancelled after %s, %s, and keeps the range; its log has the reason", n.Range, n.To, plural.Count(n.Records, "record"), plural.Count(n.Bytes, "byte"))
	case machine.NoteMoveTimeout:
		return warn, fmt.Sprintf("the state of %v could not be moved to %s: timeout without progress after %s, %s; the source keeps the range", n.Range, n.To, plural.Count(n.Records, "record"), plural.Count(n.Bytes, "byte"))
	case machine.NoteMoveCancelled:
		return debug, "a move was cancelled"
	case machine.NoteTargetGone:
		return warn, "state is lost: the owner that received it has ended"
	default:
		return debug, n.What.String()
	}
}

// logFollowing logs a note about a followed table.
func (m *Manager) logFollowing(n managerproc.Note) {
	m.log.Debug("following a table: "+n.What.String(), "namespace", n.Namespace, "term", n.Term, "lsn", n.LSN, "ownLSN", n.OwnLSN, "age", n.Age)
}
