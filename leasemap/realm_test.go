package leasemap

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// A realm is a set of servers, one of which holds all keys.
type realm struct {
	mu         sync.Mutex
	holder     int // index of the server; -1 without a holder
	generation leasehold.Generation
	stopped    bool
	suspended  bool
	servers    []*server
}

// A server is the Checker of its map.
type server struct {
	*Map[string]
	realm  *realm
	number int
}

// newRealm returns a realm whose first server is the holder.
func newRealm(t *testing.T, n int, cfg Config[string]) *realm {
	t.Helper()
	r := &realm{generation: 1}
	for i := range n {
		var g Group
		s := &server{Add(&g, "", cfg), r, i}
		if g.invalid != nil {
			t.Fatal(g.invalid)
		}
		s.use(&g, s)
		r.servers = append(r.servers, s)
	}
	return r
}

func (s *server) export(ctx context.Context, out outgoing) error { return s.group.export(ctx, out) }

func (s *server) receive(ctx context.Context, in incoming) (func(leasehold.Lease), error) {
	return s.group.receive(ctx, in)
}

// Check implements [owner.Checker].
func (s *server) Check(key leasehold.Key) (owner.Lease, bool) {
	r := s.realm
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holder != s.number || r.stopped || r.suspended {
		return owner.Lease{}, false
	}
	return owner.Lease{Lease: r.lease(), Key: key}, true
}

// Held implements [owner.Checker].
func (s *server) Held(l owner.Lease) bool {
	r := s.realm
	for range 3 {
		runtime.Gosched() // for other interleavings
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holder == s.number && !r.stopped && !r.suspended && r.generation == l.Generation
}

// Await implements [owner.Checker]. No test has a coming key.
func (s *server) Await(_ context.Context, key leasehold.Key) error {
	if _, ok := s.Check(key); !ok {
		return leasehold.ErrNotOwner
	}
	return nil
}

// Suspended implements [owner.Checker].
func (s *server) Suspended(leasehold.Key) bool {
	r := s.realm
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holder == s.number && r.suspended
}

// Leases is that of an Owner.
func (s *server) Leases() []leasehold.Lease {
	if l, held := s.Check(0); held {
		return []leasehold.Lease{l.Lease}
	}
	return nil
}

// lease returns the holder's lease.
func (r *realm) lease() leasehold.Lease {
	return leasehold.Lease{Range: leasehold.All, Generation: r.generation}
}

// owner returns the holder.
func (r *realm) owner() *server {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.servers[max(0, r.holder)]
}

// grant grants the lease to a server, after install.
func (r *realm) grant(to int, install func(leasehold.Lease)) {
	r.mu.Lock()
	from, ended := r.holder, r.lease()
	r.holder, r.generation = -1, r.generation+1
	granted := r.lease()
	r.mu.Unlock()
	if install != nil {
		install(granted)
	}
	r.mu.Lock()
	r.holder, r.stopped = to, false
	r.mu.Unlock()
	if from >= 0 {
		cause := leasehold.CauseExpired
		if install != nil {
			cause = leasehold.CauseMoved
		}
		r.servers[from].group.revoked([]leasehold.Lease{ended}, cause)
	}
}

// A transfer is a move of a range between two servers.
type transfer struct {
	realm   *realm
	records [][]byte
	during  func() // called after the copy and before the stop
	fails   error  // of Send; nil if it succeeds
}

func (p *transfer) Range() leasehold.Range { return leasehold.All }

func (p *transfer) Generation(leasehold.Key) leasehold.Generation {
	p.realm.mu.Lock()
	defer p.realm.mu.Unlock()
	return p.realm.generation
}

func (p *transfer) Send(record []byte) error {
	if p.fails != nil {
		return p.fails
	}
	p.records = append(p.records, append([]byte(nil), record...))
	return nil
}

func (p *transfer) Stop() error {
	if p.during != nil {
		p.during()
	}
	p.realm.mu.Lock()
	defer p.realm.mu.Unlock()
	p.realm.stopped = true
	return nil
}

func (p *transfer) Records() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, r := range p.records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// move moves the lease to another server, with all values.
func (r *realm) move(ctx context.Context, to int, during func()) error {
	from := r.owner()
	if from.number == to {
		return errors.New("it is there already")
	}
	p := &transfer{realm: r, during: during}
	if err := from.export(ctx, p); err != nil {
		return err
	}
	install, err := r.servers[to].receive(ctx, p)
	if err != nil {
		return err
	}
	r.grant(to, install)
	return nil
}
