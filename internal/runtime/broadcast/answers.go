package broadcast

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// maxAnswers is the maximum number of cached replies at one LSN. A reply to a single lookup needs no cache.
const maxAnswers = 64

// answers caches the newest encoded replies of a namespace. Thousands of lookups may need the same reply:
// those that missed the same update, those without a table, and those that have all changes.
type answers struct {
	snapshot *update
	at       *protocol.LookupReply // has the leader, term and LSN of all changes
	changes  map[gap]*update
}

// A gap is the changes that a lookup lacks: n changes after an LSN. Up to a leader's LSN there is one history,
// so it identifies the changes.
type gap struct {
	from leasehold.LSN
	n    int
}

// share returns the update for a reply. Replies that differ only in Echo and Age share one.
func (a *answers) share(reply *protocol.LookupReply) *update {
	if reply.Snapshot != nil {
		if s := a.snapshot; s == nil || s.reply.Snapshot != reply.Snapshot || !sameSource(s.reply, reply) {
			a.snapshot = &update{reply: reply}
		}
		return a.snapshot
	}
	if a.at == nil || a.at.LSN != reply.LSN || !sameSource(a.at, reply) {
		a.at, a.changes = reply, make(map[gap]*update)
	}
	lacks := gap{reply.From, len(reply.Changes)}
	u := a.changes[lacks]
	if u == nil {
		u = &update{reply: reply}
		if len(a.changes) < maxAnswers {
			a.changes[lacks] = u
		}
	}
	return u
}

func sameSource(a, b *protocol.LookupReply) bool { return a.Leader == b.Leader && a.Term == b.Term }
