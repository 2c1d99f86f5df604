package manager

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/protocol"
)

// News goes to all lookups of a namespace, and with thousands of them that is most
// of what a manager does: a thousand owners that join, each with a few changes,
// would keep it from all else, renewals among it. So news has a budget. A few
// changes in a row go out one by one, at once. If there are more, what happens goes
// out together, as often as the budget allows.
const (
	// tellingOne is about twice what it takes to tell one lookup, on a small
	// computer: so news takes half of a core, if there is no end of it.
	tellingOne = 40 * time.Microsecond
	// inARow is how many go out at once, after a quiet time.
	inARow = 4
	// Fewer lookups than take so long have no budget, and no more than so long is
	// between two messages.
	shortestPause, longestPause = 2 * time.Millisecond, time.Second
	// mostGathered bounds what goes out together.
	mostGathered = 4096
)

// A budget is how much of it a namespace has used, and what waits.
type budget struct {
	used  time.Time             // the news that has gone out is worth the time until then
	timer *time.Timer           // nil if nothing waits
	next  *protocol.LookupReply // what waits; its changes are its own
}

// broadcast sends news to all lookups of a namespace, at once or together with
// what comes after it.
func (l *lookups) broadcast(reply *protocol.LookupReply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ns := reply.Namespace
	cost := min(tellingOne*time.Duration(len(l.spaces[ns])), longestPause)
	if cost < shortestPause || l.closed {
		l.tell(reply)
		return
	}
	b := l.budgets[ns]
	if b == nil {
		b = &budget{}
		l.budgets[ns] = b
	}
	switch {
	case b.next == nil:
		if wait := b.spend(cost); wait > 0 {
			b.next = gathered(reply)
			b.timer = time.AfterFunc(wait, func() { l.resume(ns) })
			return
		}
		l.tell(reply)
	case continues(b.next, reply):
		b.next.Changes, b.next.LSN, b.next.Age = append(b.next.Changes, reply.Changes...), reply.LSN, reply.Age
	default: // it is of another kind, and must come after
		l.tell(b.next)
		b.next = gathered(reply)
	}
}

// spend takes the cost of a message from the budget, and returns how long that
// must wait.
func (b *budget) spend(cost time.Duration) time.Duration {
	now := time.Now()
	if b.used.Before(now) {
		b.used = now
	}
	b.used = b.used.Add(cost)
	return b.used.Sub(now) - inARow*cost
}

// gathered returns a reply to which more can be added.
func gathered(reply *protocol.LookupReply) *protocol.LookupReply {
	own := *reply
	own.Changes = slices.Clone(reply.Changes)
	return &own
}

// continues reports whether the second reply's changes follow on the first one's,
// in one message.
func continues(first, second *protocol.LookupReply) bool {
	return first.Term == second.Term && first.Leader == second.Leader && first.Snapshot == nil && second.Snapshot == nil &&
		first.Echo == second.Echo && len(first.Changes) > 0 && len(second.Changes) > 0 &&
		second.From == first.LSN && len(first.Changes)+len(second.Changes) <= mostGathered
}

// resume tells what has waited.
func (l *lookups) resume(ns leasehold.Namespace) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.budgets[ns]
	if l.closed || b == nil || b.next == nil {
		return
	}
	l.tell(b.next)
	b.next, b.timer = nil, nil
}

// tell leaves news with everybody. The lock is held.
func (l *lookups) tell(reply *protocol.LookupReply) {
	news := &encoded{reply: reply}
	for _, s := range l.spaces[reply.Namespace] {
		s.put(outgoing{update: news})
	}
}
