package manager

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/protocol"
)

// News goes to all lookups of a namespace, and with thousands of them that is most
// of what a manager does: a thousand owners that join, each with a few changes,
// would keep it from all else. So after news has gone out there is a pause, about
// as long as it takes to tell everybody, and what happens meanwhile goes out
// together. One change after a quiet time does not wait. Those that wait lose
// little, since they would stand behind the news before them anyway.
const (
	// tellingOne is about what it takes to tell one lookup, on a small computer.
	tellingOne = 10 * time.Microsecond
	// shortestPause is what a timer is worth: fewer lookups than that have none.
	shortestPause = 2 * time.Millisecond
	// mostGathered bounds what goes out together.
	mostGathered = 4096
)

// A gathering is a namespace's pause, and what is told when it ends.
type gathering struct {
	timer *time.Timer
	next  *protocol.LookupReply // its changes are its own; nil if nothing has happened
}

// broadcast sends news to all lookups of a namespace, at once or when the pause
// ends.
func (l *lookups) broadcast(reply *protocol.LookupReply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ns := reply.Namespace
	g := l.pauses[ns]
	switch {
	case g == nil:
		l.tell(reply)
		l.pause(ns)
	case g.next == nil:
		g.next = gathered(reply)
	case continues(g.next, reply):
		g.next.Changes, g.next.LSN, g.next.Age = append(g.next.Changes, reply.Changes...), reply.LSN, reply.Age
	default: // it is of another kind, and must come after
		l.tell(g.next)
		g.next = gathered(reply)
	}
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

// pause begins a pause, if there are many to tell. The lock is held.
func (l *lookups) pause(ns leasehold.Namespace) {
	pause := tellingOne * time.Duration(len(l.spaces[ns]))
	if pause < shortestPause || l.closed {
		return
	}
	l.pauses[ns] = &gathering{timer: time.AfterFunc(pause, func() { l.resume(ns) })}
}

// resume ends a pause, and begins another if something has happened.
func (l *lookups) resume(ns leasehold.Namespace) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.pauses[ns]
	delete(l.pauses, ns)
	if l.closed || g == nil || g.next == nil {
		return
	}
	l.tell(g.next)
	l.pause(ns)
}

// tell leaves news with everybody. The lock is held.
func (l *lookups) tell(reply *protocol.LookupReply) {
	news := &encoded{reply: reply}
	for _, s := range l.spaces[reply.Namespace] {
		s.put(outgoing{update: news})
	}
}
