package manager

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// logElection says what happens to our candidacy, and why.
func (m *Manager) logElection(n byrecord.Note) {
	level, text := slog.LevelDebug, n.What.String()
	switch n.What {
	case byrecord.NoteTakeover:
		level, text = slog.LevelInfo, fmt.Sprintf("the leader is taken for dead: its record stood still for %v, %v is enough", n.Elapsed, n.Limit)
	case byrecord.NoteResignedSeen:
		level, text = slog.LevelInfo, fmt.Sprintf("the leader of term %d has resigned", n.Term)
	case byrecord.NoteElected:
		text = fmt.Sprintf("elected in term %d", n.Term)
	case byrecord.NoteBeaten:
		text = fmt.Sprintf("another manager was faster: it has term %d, we wanted %d", n.Term, n.OwnTerm)
	case byrecord.NoteSwapUnknown:
		level, text = slog.LevelWarn, "the store did not confirm the leader record; it is read again before anything is decided"
	case byrecord.NoteSwapFound:
		level, text = slog.LevelInfo, "the leader record had been written after all"
	case byrecord.NoteSwapRetry:
		text = "the leader record had not been written; it is written again"
	case byrecord.NoteLapsed:
		level, text = slog.LevelWarn, "leadership could not be renewed in time: nothing is granted or renewed until it is"
	case byrecord.NoteRegained:
		level, text = slog.LevelInfo, "leadership is renewed, nobody had taken over"
	case byrecord.NoteDeposed:
		level, text = slog.LevelWarn, fmt.Sprintf("another manager leads in term %d; ours was %d", n.Term, n.OwnTerm)
	case byrecord.NoteResigning:
		level, text = slog.LevelInfo, "handing leadership over"
	case byrecord.NoteDismissed:
		level, text = slog.LevelWarn, fmt.Sprintf("the lease of leadership, term %d, is over: it could not be renewed in time, or was given up", n.Term)
	case byrecord.NoteOutranked:
		level, text = slog.LevelWarn, fmt.Sprintf("somebody has heard of term %d, and ours is %d: leadership is given up for a term above that. Was the wall clock set back?", n.Term, n.OwnTerm)
	case byrecord.NoteDisbelieved:
		level, text = slog.LevelWarn, fmt.Sprintf("an owner has heard of term %d, and ours is %d: the managers remember no such leader, and nothing is done. If that server stays without keys, restart it", n.Term, n.OwnTerm)
	case byrecord.NoteForgotten:
		level, text = slog.LevelError, fmt.Sprintf("there was a leader in term %d, and the store knows of none after term %d: was it restored from an old backup? A new term begins above that", n.Term, n.StoreTerm)
	case byrecord.NoteUncertain:
		level, text = slog.LevelWarn, fmt.Sprintf("a restored store cannot be excluded: the leader record is %v old by wall clocks, and no running manager has seen it change. Suspended leases resume, and ranges are granted, after one lease and the allowance for clock drift", n.Elapsed)
	case byrecord.NoteOldRecord:
		text = fmt.Sprintf("a leader record of version %d is older than %d and ignored", n.Version, n.NewestVersion)
	case byrecord.NoteSlept:
		level, text = slog.LevelWarn, "this computer was suspended: leadership is given up, since nobody knows how long it still lasts"
	case byrecord.NoteLimping:
		level, text = slog.LevelWarn, fmt.Sprintf("leader record renewed too late several times: the last write took %v, the TTL is %v; leadership is handed over. Is the disk slow?", n.Elapsed, n.Limit)
	case byrecord.NoteFruitless:
		level, text = slog.LevelWarn, fmt.Sprintf("leader again, although writes of the leader record were too slow: no other manager has led for long, %d times in a row", n.Resignations)
	case byrecord.NoteCopied:
		level, text = slog.LevelError, fmt.Sprintf("the leader record of term %d was written to another cluster, so this store was restored from a backup: suspended leases end, and numbers go on above all that may be lost", n.Term)
	case byrecord.NoteOwnRecord:
		text = "the leader record is our own, from before we stepped down"
	}
	m.log.Log(context.Background(), level, text)
}

// logNamespace says what happens in a namespace, and why.
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

// describe puts a note of a namespace's machine into words.
func describe(n machine.Note) (slog.Level, string) {
	const debug, info, warn = slog.LevelDebug, slog.LevelInfo, slog.LevelWarn
	switch n.What {
	case machine.NoteBadMessage:
		return warn, fmt.Sprintf("an invalid message was dropped: term %d, sequence number %d", n.Term, n.Seq)
	case machine.NoteForeign:
		return warn, "a message was dropped: it was in the session of another owner, or for another namespace"
	case machine.NoteNoAuthority:
		return debug, "a message came while our time as leader had run out"
	case machine.NoteDuplicate:
		return debug, fmt.Sprintf("request %d was heard before: want one newer than %d", n.Seq, n.NewestSeq)
	case machine.NoteRace:
		return debug, fmt.Sprintf("a request crossed one of our messages: it reflects %d, our newest is %d", n.Seq, n.NewestSeq)
	case machine.NoteCopy:
		return slog.LevelError, "two processes speak in one session of this owner: its computer was copied while it ran. At most one of them is renewed, or neither: stop one"
	case machine.NoteForgotten:
		return slog.LevelError, fmt.Sprintf("the owner has a lease of generation %d, and the newest in the store was %d: the store was restored from a backup. Suspended leases are not resumed, and the table goes on at higher numbers", n.Generation, n.NewestGeneration)
	case machine.NoteLogForgotten:
		return slog.LevelError, fmt.Sprintf("the log in the store ends at change %d, and we have written %d: was it restored from an old backup? Leadership is given up for a new term", n.LSN, n.OwnLSN)
	case machine.NoteRebased:
		return info, fmt.Sprintf("the table goes on at LSN and generation %d, after %d: numbers that the store may have lost are not given out again", n.OwnLSN, n.LSN)
	case machine.NoteHello:
		return info, "an owner says hello"
	case machine.NoteJoined:
		return info, "an owner joined"
	case machine.NoteExpired:
		return warn, fmt.Sprintf("an owner was not heard for longer than its lease, because it died, was cut off, or nobody led: its %d leases have expired", n.Leases)
	case machine.NoteOutage:
		return warn, fmt.Sprintf("%d owners were not heard for longer than a lease, and no other could take their ranges: they stay in the table with their leases suspended until an owner is heard", n.Owners)
	case machine.NoteOutageOver:
		return info, "an owner is heard again after an outage: suspended leases are resumed, and owners that are still silent have the time of a lease to return"
	case machine.NoteLeft:
		return info, fmt.Sprintf("an owner left and gave back %d leases", n.Leases)
	case machine.NoteReleased:
		return debug, fmt.Sprintf("a recalled lease came back: generation %d", n.Generation)
	case machine.NoteRefused:
		return info, fmt.Sprintf("an owner does not know its lease of generation %d: it goes to someone under a new one", n.Generation)
	case machine.NoteNameTaken:
		return warn, "a second process uses this owner's name: it waits until the first is gone"
	case machine.NoteSuccessor:
		return info, "a waiting process got its name"
	case machine.NotePredecessor:
		return info, fmt.Sprintf("a waiting process proved that the one before it is gone: its %d leases end", n.Leases)
	case machine.NoteFull:
		return warn, fmt.Sprintf("an owner was refused: %d are connected, and that is the limit", n.Owners)
	case machine.NoteCommitUnknown:
		return warn, fmt.Sprintf("the store did not confirm changes %d to %d; the log is read before anything is decided", n.LSN+1, n.OwnLSN)
	case machine.NoteCommitRetry:
		return info, fmt.Sprintf("the changes had not been written; the log ends at %d and they are written again", n.LSN)
	case machine.NoteCommitFound:
		return info, fmt.Sprintf("the changes had been written after all: the log ends at %d", n.LSN)
	case machine.NoteSnapshot:
		return debug, fmt.Sprintf("a lookup at change %d gets the whole table at %d", n.LSN, n.OwnLSN)
	case machine.NoteLookupAhead:
		return warn, fmt.Sprintf("a lookup knows change %d, and our table ends at %d: was the store restored from a backup?", n.LSN, n.OwnLSN)
	case machine.NotePolicyRefused:
		return warn, fmt.Sprintf("the policy failed, and what it has decided before stays: %v", n.Err)
	case machine.NoteTakeoverRenews:
		return info, fmt.Sprintf("an owner goes on with %d leases under a new leader", n.Leases)
	case machine.NoteCompacted:
		return info, fmt.Sprintf("%d leases side by side are recalled, to be one", n.Leases)
	case machine.NoteParting:
		return info, fmt.Sprintf("an owner wants to leave: its %d leases are moved away first", n.Leases)
	case machine.NoteNoMover:
		return warn, fmt.Sprintf("an owner joined without a Mover, and %d others have one: the state of ranges that go to it, or from it, is lost", n.Owners)
	default:
		return describeMove(n)
	}
}

// describeMove puts a note about a move into words.
func describeMove(n machine.Note) (slog.Level, string) {
	const debug, warn = slog.LevelDebug, slog.LevelWarn
	switch n.What {
	case machine.NoteMoveBegun:
		return debug, "an owner is to send state to another"
	case machine.NoteMoveDone:
		return debug, fmt.Sprintf("the state of %v has been sent to %s in %v", n.Range, n.To, n.Took)
	case machine.NoteMoved:
		return debug, fmt.Sprintf("state has gone to another owner: generation %d ended", n.Generation)
	case machine.NoteMoveFailed:
		return warn, fmt.Sprintf("the state of %v could not be moved to %s: the source gave up after %d records, %d bytes, and goes on with the range; its log says why", n.Range, n.To, n.Records, n.Bytes)
	case machine.NoteMoveTimeout:
		return warn, fmt.Sprintf("the state of %v could not be moved to %s: there was no progress for too long, after %d records, %d bytes, and the source goes on with the range", n.Range, n.To, n.Records, n.Bytes)
	case machine.NoteMoveCancelled:
		return debug, "a move is no longer wanted"
	case machine.NoteTargetGone:
		return warn, "an owner has handed state over to another that is gone by now: it is lost"
	default:
		return debug, n.What.String()
	}
}

// logFollowing says what happens to a table that we follow.
func (m *Manager) logFollowing(n managerproc.Note) {
	m.log.Debug("following a table: "+n.What.String(), "namespace", n.Namespace, "term", n.Term, "lsn", n.LSN, "ownLSN", n.OwnLSN, "age", n.Age)
}
