package dashboard

import (
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// linger is how long a hub goes on without viewers: a page that is loaded again finds
// it.
const linger = 10 * time.Second

// hubs knows the hub of each namespace that somebody looks at.
type hubs struct {
	admin leaseholdv1.AdminServiceServer
	most  int
	pack  *packer

	mu      sync.Mutex
	closed  bool
	viewers int
	open    map[string]*hub
	sweep   *time.Timer // nil while no hub is open
	ending  sync.WaitGroup
}

func newHubs(admin leaseholdv1.AdminServiceServer, most int) *hubs {
	return &hubs{admin: admin, most: most, pack: &packer{}, open: make(map[string]*hub)}
}

// join adds a viewer to the hub of a namespace, which is started if there is none. The
// caller must call leave.
func (s *hubs) join(namespace, last string) (*hub, *viewer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, nil, leasehold.Errorf("look", leasehold.Closed, "", "this manager is shutting down; look at another")
	case s.viewers >= s.most:
		return nil, nil, leasehold.Errorf("look", leasehold.Limit, "", "%d look at this manager already, and that is the limit: look at another", s.viewers)
	}
	h := s.open[namespace]
	if h == nil && len(s.open) >= 2*s.most {
		return nil, nil, leasehold.Errorf("look", leasehold.Limit, namespace, "%d namespaces were looked at just now, and that is the limit: try again in %v", len(s.open), linger)
	}
	if h == nil {
		h = newHub(s.admin, namespace)
		s.open[namespace] = h
		if s.sweep == nil {
			s.sweep = time.AfterFunc(linger, s.tidy)
		}
	}
	s.viewers++
	v := h.join(last)
	return h, v, nil
}

func (s *hubs) leave(h *hub, v *viewer) {
	h.leave(v)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.viewers--
}

// tidy ends the hubs that nobody has looked at for a while.
func (s *hubs) tidy() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for namespace, h := range s.open {
		if h.deserted(linger) {
			delete(s.open, namespace)
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
	for namespace, h := range s.open {
		delete(s.open, namespace)
		s.ending.Go(h.close)
	}
	s.mu.Unlock()
	s.ending.Wait()
}
