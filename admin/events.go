package admin

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// The types of an Event.
const (
	EventChange = "change" // of the lease table
	EventNote   = "note"   // such as an owner that joins
	EventLeader = "leader" // another manager leads, or none
	EventGap    = "gap"    // events may be missing
)

// An Event is something that happened in a group.
type Event struct {
	At        time.Time   `json:"at,omitzero"`
	Namespace string      `json:"namespace,omitempty"`
	Missed    uint64      `json:"missed,omitempty"` // events before this one that were dropped
	Type      string      `json:"type"`             // EventChange, ...; "unknown" if it is of a newer version
	Change    *Change     `json:"change,omitempty"`
	Note      *Note       `json:"note,omitempty"`
	Leader    *LeaderName `json:"leader,omitempty"`
	Text      string      `json:"text,omitempty"` // of EventGap
}

// A Note is a sentence for people.
type Note struct {
	What  string `json:"what"`
	Owner string `json:"owner"`
	Text  string `json:"text"`
}

// A LeaderName is the leader of a term; "" is none.
type LeaderName struct {
	Term   leasehold.Term `json:"term,string"`
	Leader string         `json:"leader"`
}

// EventOf converts an event of the service.
func EventOf(w *leaseholdv1.WatchResponse) Event {
	e := Event{Namespace: w.GetNamespace(), Missed: w.GetMissed(), Type: "unknown"}
	if w.GetAt() != nil {
		e.At = w.GetAt().AsTime()
	}
	switch event := w.GetEvent().(type) {
	case *leaseholdv1.WatchResponse_Change:
		e.Type, e.Change = EventChange, new(changeOf(event.Change))
	case *leaseholdv1.WatchResponse_Note:
		e.Type, e.Note = EventNote, &Note{event.Note.GetWhat(), event.Note.GetOwner(), event.Note.GetText()}
	case *leaseholdv1.WatchResponse_Leader:
		e.Type, e.Leader = EventLeader, &LeaderName{leasehold.Term(event.Leader.GetTerm()), event.Leader.GetLeader()}
	}
	return e
}

// Event returns the change as an event.
func (c Change) Event(namespace string) Event {
	return Event{At: c.At, Namespace: namespace, Type: EventChange, Change: &c}
}

// Event returns the leadership as an event.
func (l Leadership) Event() Event {
	return Event{At: l.At, Type: EventLeader, Leader: &LeaderName{l.Term, l.Leader}}
}

// Changes returns up to most changes of a lease table, newest first: those before an LSN, or the newest
// if it is 0. A manager returns at most 4096 at once; more reports whether there are earlier ones.
func (c *Client) Changes(ctx context.Context, namespace string, before leasehold.LSN, most uint32) (changes []Change, more bool, err error) {
	err = c.Do(ctx, func(ctx context.Context, s service) error {
		page, err := s.ListChanges(ctx, changesRequest(namespace, uint64(before), most))
		changes, more = convert(page.GetChanges(), changeOf), page.GetMore()
		return err
	})
	return changes, more, err
}

func changesRequest(namespace string, before uint64, most uint32) *leaseholdv1.ListChangesRequest {
	return &leaseholdv1.ListChangesRequest{Version: wire.Version, Namespace: namespace, Before: before, Most: most}
}

// EventKinds are the values of EventQuery.Kinds.
func EventKinds() []string {
	return []string{"loss", ChangeGranted, ChangeMoved, ChangeVacated, EventLeader, "expired", "released", "left", "refused", "restarted", "died"}
}

// An EventQuery selects events.
type EventQuery struct {
	Namespace string
	Since     time.Time      // the zero time: all that are stored
	Kinds     []string       // of EventKinds; empty: all. "loss" is any change with which state is lost
	Key       *leasehold.Key // only changes of the range that contains it; nil: all
	Most      int            // the newest; default 1000
}

// Selects reports whether the query selects an event of its namespace, regardless of the time.
func (q EventQuery) Selects(e Event) bool {
	if q.Key != nil && (e.Change == nil || !e.Change.Keys().Contains(*q.Key)) {
		return false
	}
	return len(q.Kinds) == 0 || slices.ContainsFunc(q.Kinds, func(kind string) bool {
		if e.Change == nil {
			return kind == e.Type
		}
		return kind == e.Change.Kind || kind == e.Change.Cause || kind == "loss" && e.Change.Kind == ChangeVacated
	})
}

// Events are past events of a namespace, newest last.
type Events struct {
	Namespace string  `json:"namespace"`
	Events    []Event `json:"events"`
	More      bool    `json:"more"`      // there are earlier ones
	Truncated bool    `json:"truncated"` // earlier ones are no longer stored
	Diskless  bool    `json:"diskless"`  // because the managers store nothing on disk
}

const (
	defaultEvents = 1000
	eventsPage    = 4096 // changes in one request
	// clockSlack is the assumed difference between the wall clocks of leaders. The search for
	// events since a time continues for that much before it.
	clockSlack = 5 * time.Minute
)

// Events returns the events of a namespace: changes of the lease table, and the leaders that the
// responding manager has observed. It costs one request for each 4096 changes.
func (c *Client) Events(ctx context.Context, q EventQuery) (Events, error) {
	if q.Most == 0 {
		q.Most = defaultEvents
	}
	var found Events
	err := c.Do(ctx, func(ctx context.Context, s service) (err error) {
		search := eventSearch{EventQuery: q}
		err = search.run(ctx, s)
		found = search.result()
		return err
	})
	return found, err
}

// An eventSearch reads the changes of a lease table, newest first, until it has enough.
type eventSearch struct {
	EventQuery
	events []Event // newest first

	more, truncated, diskless bool
}

func (q *eventSearch) run(ctx context.Context, s service) error {
	status, err := s.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
	if err != nil {
		return err
	}
	if err := q.readChanges(ctx, s); err != nil {
		return err
	}
	q.addLeaders(StatusOf(status).Terms)
	return nil
}

func (q *eventSearch) readChanges(ctx context.Context, s service) error {
	for before := uint64(0); ; {
		page, err := s.ListChanges(ctx, changesRequest(q.Namespace, before, eventsPage))
		if err != nil {
			return err
		}
		for _, c := range page.GetChanges() {
			before = c.GetLsn()
			if !q.add(changeOf(c).Event(q.Namespace)) {
				return nil
			}
		}
		if !page.GetMore() || len(page.GetChanges()) == 0 {
			q.truncated, q.diskless = page.GetTruncated(), page.GetBegun() > 0
			return nil
		}
	}
}

// add adds the next older event if it is selected, and reports whether to continue.
func (q *eventSearch) add(e Event) bool {
	switch {
	case e.At.Before(q.Since):
		return e.At.After(q.Since.Add(-clockSlack))
	case !q.Selects(e):
		return true
	case len(q.events) == q.Most:
		q.more = true
		return false
	}
	q.events = append(q.events, e)
	return true
}

// addLeaders inserts leaders within the time of the changes. Changes keep the order of their LSNs, even if
// the clocks of the leaders differ.
func (q *eventSearch) addLeaders(terms []Leadership) {
	from := q.Since
	if n := len(q.events); q.more && n > 0 {
		from = q.events[n-1].At
	}
	for _, l := range terms {
		e := l.Event()
		if e.At.Before(from) || !q.Selects(e) {
			continue
		}
		at := slices.IndexFunc(q.events, func(other Event) bool { return !other.At.After(e.At) })
		if at < 0 {
			at = len(q.events)
		}
		q.events = slices.Insert(q.events, at, e)
	}
	if len(q.events) > q.Most {
		q.events, q.more = q.events[:q.Most], true
	}
}

func (q *eventSearch) result() Events {
	found := Events{Namespace: q.Namespace, Events: []Event{}, More: q.more, Truncated: q.truncated, Diskless: q.diskless}
	for _, e := range slices.Backward(q.events) {
		found.Events = append(found.Events, e)
	}
	return found
}
