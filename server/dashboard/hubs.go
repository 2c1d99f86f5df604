package dashboard

import (
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/admin"
)

// linger is how long a hub runs without viewers: a page that is loaded again finds it.
const linger = 10 * time.Second

// hubs are the hubs of all namespaces that have viewers. With an access policy each visitor has hubs of
// its own, which call the manager as that visitor.
type hubs struct {
	client   *admin.Client
	most     int                                                // viewers in all
	mostEach int                                                // viewers of one visitor
	may      func(caller access.Caller, fullMethod string) bool // whether a caller may call that
	pack     *packer

	mu      sync.Mutex
	closed  bool
	viewers map[string]int // by the key of the visitor
	open    map[hubKey]*hub
	sweep   *time.Timer // nil while no hub is open
	ending  sync.WaitGroup
}

type hubKey struct{ visitor, namespace string }

func newHubs(client *admin.Client, most int) *hubs {
	return &hubs{
		client: client, most: most, mostEach: most, may: func(access.Caller, string) bool { return true },
		pack: &packer{}, viewers: make(map[string]int), open: make(map[hubKey]*hub),
	}
}

// join adds a viewer to the hub of a namespace, which it starts if there is none. The viewer must leave.
func (s *hubs) join(who *visitor, namespace, last string) (*hub, *viewer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := 0
	for _, n := range s.viewers {
		all += n
	}
	switch {
	case s.closed:
		return nil, nil, leasehold.Errorf("look", leasehold.ErrClosed, "", "this manager is shutting down; look at another")
	case all >= s.most:
		return nil, nil, leasehold.Errorf("look", leasehold.ErrLimit, "", "%d look at this manager already, and that is the limit: look at another", all)
	case s.viewers[who.key] >= s.mostEach:
		return nil, nil, leasehold.Errorf("look", leasehold.ErrLimit, "", "you look at this manager in %d windows already, and that is the limit: close some", s.mostEach)
	}
	key := hubKey{who.key, namespace}
	h := s.open[key]
	if h == nil && len(s.open) >= 2*s.most {
		return nil, nil, leasehold.Errorf("look", leasehold.ErrLimit, namespace, "%d namespaces were looked at just now, and that is the limit: try again in %v", len(s.open), linger)
	}
	if h == nil {
		h = newHub(s.client, who.caller, namespace, func(fullMethod string) bool { return s.may(who.caller, fullMethod) })
		s.open[key] = h
		if s.sweep == nil {
			s.sweep = time.AfterFunc(linger, s.tidy)
		}
	}
	s.viewers[who.key]++
	v := h.join(last)
	v.of = who.key
	return h, v, nil
}

func (s *hubs) leave(h *hub, v *viewer) {
	h.leave(v)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.viewers[v.of]--; s.viewers[v.of] == 0 {
		delete(s.viewers, v.of)
	}
}

// tidy ends the hubs that had no viewers for a while.
func (s *hubs) tidy() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for key, h := range s.open {
		if h.deserted(linger) {
			delete(s.open, key)
			s.ending.Go(h.close)
		}
	}
	s.sweep = nil
	if len(s.open) > 0 {
		s.sweep = time.AfterFunc(linger/2, s.tidy)
	}
}

// close ends all hubs, and waits for them. It may be called more than once.
func (s *hubs) close() {
	s.mu.Lock()
	s.closed = true
	if s.sweep != nil {
		s.sweep.Stop()
	}
	for key, h := range s.open {
		delete(s.open, key)
		s.ending.Go(h.close)
	}
	s.mu.Unlock()
	s.ending.Wait()
}
