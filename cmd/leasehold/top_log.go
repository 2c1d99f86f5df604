package main

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A topLog is the last events of all namespaces: as they are watched, and from the
// journal what was before. Its methods may be called from many goroutines at once.
type topLog struct {
	mu     sync.Mutex
	events []eventDocument // by time, newest last
	filled map[string]bool // the journal of these namespaces was read
}

// mostLogged bounds how many events are kept.
const mostLogged = 1000

// add takes up events, unless they are known: the journal and the watch tell of the
// same changes, and every watch begins with who leads.
func (l *topLog) add(events ...eventDocument) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.insert(e)
	}
	if over := len(l.events) - mostLogged; over > 0 {
		l.events = slices.Delete(l.events, 0, over)
	}
}

// insert puts an event in its place, unless it is known.
func (l *topLog) insert(e eventDocument) {
	at := len(l.events)
	for at > 0 && l.events[at-1].at.After(e.at) {
		at--
	}
	switch {
	case e.Change != nil && slices.ContainsFunc(l.events, e.same):
		return
	case e.Leader != nil:
		if before := nextLeader(slices.Backward(l.events[:at])); before >= 0 && *l.events[before].Leader == *e.Leader {
			return // nothing has changed since
		}
		// Who leads since earlier than was known began then.
		if after := nextLeader(slices.All(l.events[at:])); after >= 0 && *l.events[at+after].Leader == *e.Leader {
			l.events = slices.Delete(l.events, at+after, at+after+1)
		}
	}
	l.events = slices.Insert(l.events, at, e)
}

// nextLeader returns the index of the first event of a sequence that says who leads, or -1.
func nextLeader(events iter.Seq2[int, eventDocument]) int {
	for i, e := range events {
		if e.Leader != nil {
			return i
		}
	}
	return -1
}

// same reports whether two events are one change, told twice.
func (e eventDocument) same(other eventDocument) bool {
	return e.Change != nil && other.Change != nil && e.Namespace == other.Namespace && e.Change.LSN == other.Change.LSN
}

// gap notes that events were missed. The journal has those that matter most.
func (l *topLog) gap(why string) {
	now := time.Now()
	l.add(eventDocument{Type: "gap", Text: why, At: now.Format(time.RFC3339Nano), at: now})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filled = nil
}

// fill reads the journal of a namespace, if that is to be done.
func (l *topLog) fill(ctx context.Context, to admin, namespace string) {
	l.mu.Lock()
	filled := l.filled[namespace]
	l.mu.Unlock()
	if filled {
		return
	}
	answer, err := to.ListChanges(ctx, &leaseholdv1.ListChangesRequest{Version: wire.Version, Namespace: namespace, Most: topEvents})
	if err != nil {
		return // it is too old to know, or the next look will tell
	}
	var past []eventDocument
	for _, c := range slices.Backward(answer.GetChanges()) {
		past = append(past, pastJSON(namespace, c))
	}
	l.add(past...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.filled == nil {
		l.filled = make(map[string]bool)
	}
	l.filled[namespace] = true
}

// pastJSON is a change of the journal as an event.
func pastJSON(namespace string, c *leaseholdv1.HistoryEntry) eventDocument {
	change := changeJSON(c)
	return eventDocument{At: change.At, at: change.at, Namespace: namespace, Type: "change", Change: &change}
}

// leaders takes up who has led.
func (l *topLog) leaders(list []*leaseholdv1.Leadership) {
	var past []eventDocument
	for _, s := range slices.Backward(list) {
		past = append(past, leadershipJSON(s))
	}
	l.add(past...)
}

// leadershipJSON is that somebody leads from some time on, as an event.
func leadershipJSON(s *leaseholdv1.Leadership) eventDocument {
	at := s.GetAt().AsTime()
	return eventDocument{
		At: at.Format(time.RFC3339Nano), at: at, Type: "leader", Leader: &leaderDocument{decimal(s.GetTerm()), s.GetLeader()},
	}
}

// tail returns the last events of a namespace and of the group.
func (l *topLog) tail(namespace string, most int) []eventDocument {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []eventDocument{}
	for _, e := range slices.Backward(l.events) {
		if e.Namespace == "" || e.Namespace == namespace {
			if out = append(out, e); len(out) == most {
				break
			}
		}
	}
	slices.Reverse(out)
	return out
}
