package agent

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A feed sends the changes of an owner's leases to its followers. Its zero value is ready.
type feed struct {
	mu        sync.Mutex
	followers map[*follower]struct{}
}

// A follower is a queue of events. If the queue overflows, one event with all leases replaces them: leases
// that are not in it have ended.
type follower struct {
	news    chan struct{} // has room for one
	pending []event
	missed  bool
}

// maxPending bounds the queue of a follower.
const maxPending = 256

// An event is one line of the stream of events.
type event struct {
	Type   string          `json:"type" enum:"leases,granted,revoked,suspended,resumed,closed"`
	Leases []leaseDocument `json:"leases,omitzero"`
	Cause  string          `json:"cause,omitempty"`
	Why    string          `json:"why,omitempty"`
	// Suspended, of the type "leases": these are kept, and must not be used.
	Suspended bool `json:"suspended,omitempty"`
}

func (f *feed) open() *follower {
	one := &follower{news: make(chan struct{}, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers == nil {
		f.followers = make(map[*follower]struct{})
	}
	f.followers[one] = struct{}{}
	return one
}

func (f *feed) close(one *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.followers, one)
}

// changed returns a callback of the owner that reports leases as an event of a type.
func (f *feed) changed(kind string) func([]leasehold.Lease) {
	return func(leases []leasehold.Lease) { f.publish(event{Type: kind, Leases: leasesOf(leases)}) }
}

func (f *feed) revoked(leases []leasehold.Lease, why leasehold.Cause) {
	f.publish(event{Type: "revoked", Leases: leasesOf(leases), Cause: causeName(why)})
}

// publish queues an event for all followers. It does not block.
func (f *feed) publish(e event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for one := range f.followers {
		if one.pending = append(one.pending, e); len(one.pending) > maxPending {
			one.pending, one.missed = nil, true
		}
		select {
		case one.news <- struct{}{}:
		default:
		}
	}
}

// take returns the queued events, and whether events before them were dropped.
func (f *feed) take(one *follower) (events []event, missed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	events, missed = one.pending, one.missed
	one.pending, one.missed = nil, false
	return events, missed
}

// causeName is the wire name of a cause.
func causeName(c leasehold.Cause) string { return strings.ReplaceAll(c.String(), " ", "_") }

// events serves GET /v1/owners/{id}/events: first all leases, then changes.
func (a *Agent) events(w http.ResponseWriter, r *http.Request) {
	s, err := a.session(r)
	if err != nil {
		fail(w, err)
		return
	}
	a.stream(w, func(out *stream) {
		s.opened()
		defer s.broke()
		one := s.feed.open()
		defer s.feed.close(one)
		s.follow(r, out, one)
	})
}

func (s *session) follow(r *http.Request, out *stream, one *follower) {
	pulse := time.NewTicker(aliveEvery)
	defer pulse.Stop()
	ok := out.send(s.all())
	for ok {
		select {
		case <-one.news:
			ok = s.forward(out, one)
		case <-pulse.C:
			ok = out.send(alive{"alive"})
		case <-s.gone:
			if s.forward(out, one) {
				out.send(event{Type: "closed", Why: s.why})
			}
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s *session) forward(out *stream, one *follower) bool {
	events, missed := s.feed.take(one)
	if missed && !out.send(s.all()) {
		return false
	}
	for _, e := range events {
		if !out.send(e) {
			return false
		}
	}
	return true
}

// all is the event that replaces all events before it. Suspended leases have not ended.
func (s *session) all() event {
	if kept := s.owner.SuspendedLeases(); len(kept) > 0 {
		return event{Type: "leases", Leases: leasesOf(kept), Suspended: true}
	}
	return event{Type: "leases", Leases: leasesOf(s.owner.Leases())}
}
