package top

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

// A Log is the last events of all namespaces: as they are watched, and from the
// journal what was before. Its methods may be called from many goroutines at once.
type Log struct {
	mu     sync.Mutex
	Events []admin.Event   // by time, newest last
	filled map[string]bool // the journal of these namespaces was read
}

// MostLogged bounds how many events are kept.
const MostLogged = 1000

// Add takes up events, unless they are known: the journal and the watch tell of the
// same changes, and every watch begins with who leads.
func (l *Log) Add(events ...admin.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.insert(e)
	}
	if over := len(l.Events) - MostLogged; over > 0 {
		l.Events = slices.Delete(l.Events, 0, over)
	}
}

// insert puts an event in its place, unless it is known.
func (l *Log) insert(e admin.Event) {
	at := len(l.Events)
	for at > 0 && l.Events[at-1].At.After(e.At) {
		at--
	}
	switch {
	case e.Change != nil && slices.ContainsFunc(l.Events, func(other admin.Event) bool { return sameChange(e, other) }):
		return
	case e.Leader != nil:
		if before := nextLeader(slices.Backward(l.Events[:at])); before >= 0 && *l.Events[before].Leader == *e.Leader {
			return // nothing has changed since
		}
		// Who leads since earlier than was known began then.
		if after := nextLeader(slices.All(l.Events[at:])); after >= 0 && *l.Events[at+after].Leader == *e.Leader {
			l.Events = slices.Delete(l.Events, at+after, at+after+1)
		}
	}
	l.Events = slices.Insert(l.Events, at, e)
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
func (l *Log) take(e admin.Event) {
	if e.Missed > 0 {
		l.gap(console.Counted(int(e.Missed), "event") + " missed: they came faster than they were read")
	}
	if e.Type == admin.EventGap {
		l.gap(e.Text)
		return
	}
	l.Add(e)
}

// gap notes that events were missed. The journal has those that matter most.
func (l *Log) gap(why string) {
	l.Add(admin.Event{Type: admin.EventGap, Text: why, At: time.Now()})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filled = nil
}

// fill reads the journal of a namespace, if that is to be done.
func (l *Log) fill(ctx context.Context, from *admin.Client, namespace string) {
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
	l.Add(past...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.filled == nil {
		l.filled = make(map[string]bool)
	}
	l.filled[namespace] = true
}

// Leaders takes up who has led.
func (l *Log) Leaders(list []admin.Leadership) {
	var past []admin.Event
	for _, s := range slices.Backward(list) {
		past = append(past, s.Event())
	}
	l.Add(past...)
}

// Tail returns the last events of a namespace and of the group.
func (l *Log) Tail(namespace string, most int) []admin.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []admin.Event{}
	for _, e := range slices.Backward(l.Events) {
		if e.Namespace == "" || e.Namespace == namespace {
			if out = append(out, e); len(out) == most {
				break
			}
		}
	}
	slices.Reverse(out)
	return out
}
