package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/storage"
)

// answers remembers what lookups of a namespace were last answered, encoded. Thousands may
// ask for the same at once: those who have missed the same news, those who have nothing, and
// those who only want to know that there is nothing new.
type answers struct {
	snapshot *encoded // the newest table that was sent as a whole
	at       position // of the changes
	changes  map[missing]*encoded
}

// A position is how far a table is, and who says so.
type position struct {
	leader storage.ManagerID
	term   leasehold.Term
	lsn    leasehold.LSN
}

// missing is what a lookup lacks: so many changes after some number. Up to a position there
// is one history, so that it says which ones.
type missing struct {
	from leasehold.LSN
	n    int
}

// maxAnswers bounds how many different answers are remembered at a position: a lookup that is
// alone with what it lacks gains nothing by it.
const maxAnswers = 64

// share returns the encoded form of a reply but for what is the asker's own, shared by all who
// get the same.
func (a *answers) share(reply *protocol.LookupReply) *encoded {
	if reply.Snapshot != nil {
		if e := a.snapshot; e == nil || !sameTable(e.reply, reply) {
			a.snapshot = &encoded{reply: reply}
		}
		return a.snapshot
	}
	if at := (position{reply.Leader, reply.Term, reply.LSN}); at != a.at || a.changes == nil {
		a.at, a.changes = at, make(map[missing]*encoded)
	}
	lacks := missing{reply.From, len(reply.Changes)}
	e := a.changes[lacks]
	if e == nil {
		e = &encoded{reply: reply}
		if len(a.changes) < maxAnswers {
			a.changes[lacks] = e
		}
	}
	return e
}

func sameTable(a, b *protocol.LookupReply) bool {
	return a.Snapshot == b.Snapshot && a.Term == b.Term && a.Leader == b.Leader
}
