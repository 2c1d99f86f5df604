package main

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

// A topLog is the last events of all namespaces: as they are watched, and from the
// journal what was before. Its methods may be called from many goroutines at once.
type topLog struct {
	mu     sync.Mutex
	events []admin.Event   // by time, newest last
	filled map[string]bool // the journal of these namespaces was read
}

// mostLogged bounds how many events are kept.
const mostLogged = 1000

// add takes up events, unless they are known: the journal and the watch tell of the
// same changes, and every watch begins with who leads.
func (l *topLog) add(events ...admin.Event) {
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
func (l *topLog) insert(e admin.Event) {
	at := len(l.events)
	for at > 0 && l.events[at-1].At.After(e.At) {
		at--
	}
	switch {
	case e.Change != nil && slices.ContainsFunc(l.events, func(other admin.Event) bool { return sameChange(e, other) }):
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
func nextLeader(events iter.Seq2[int, admin.Event]) int {
	for i, e := range events {
		if e.Leader != nil {
			return i
		}
	}
	return -1
}

// sameChange reports whether two events are one change, told twice.
func sameChange(e, other admin.Event) bool {
	return e.Change != nil && other.Change != nil && e.Namespace == other.Namespace && e.Change.LSN == other.Change.LSN
}

// take takes up an event of a watch.
func (l *topLog) take(e admin.Event) {
	if e.Missed > 0 {
		l.gap(console.Counted(int(e.Missed), "event") + " missed: they came faster than they were read")
	}
	if e.Type == admin.EventGap {
		l.gap(e.Text)
		return
	}
	l.add(e)
}

// gap notes that events were missed. The journal has those that matter most.
func (l *topLog) gap(why string) {
	l.add(admin.Event{Type: admin.EventGap, Text: why, At: time.Now()})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filled = nil
}

// fill reads the journal of a namespace, if that is to be done.
func (l *topLog) fill(ctx context.Context, from *admin.Client, namespace string) {
	l.mu.Lock()
	filled := l.filled[namespace]
	l.mu.Unlock()
	if filled {
		return
	}
	changes, _, err := from.Changes(ctx, namespace, 0, topEvents)
	if err != nil {
		return // it is too old to know, or the next look will tell
	}
	var past []admin.Event
	for _, c := range slices.Backward(changes) {
		past = append(past, c.Event(namespace))
	}
	l.add(past...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.filled == nil {
		l.filled = make(map[string]bool)
	}
	l.filled[namespace] = true
}

// leaders takes up who has led.
func (l *topLog) leaders(list []admin.Leadership) {
	var past []admin.Event
	for _, s := range slices.Backward(list) {
		past = append(past, s.Event())
	}
	l.add(past...)
}

// tail returns the last events of a namespace and of the group.
func (l *topLog) tail(namespace string, most int) []admin.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []admin.Event{}
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
