package owner_test

import (
	"context"
	"log"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// A server that keeps who is online, in memory, with the steps that package
// leasehold asks for.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s := &server{users: make(map[leasehold.Key]user)}
	o, err := owner.Join(ctx, owner.Config{
		Namespace: "presence",
		Managers:  []string{"10.0.0.1:7400", "10.0.0.2:7400", "10.0.0.3:7400"},
		Addr:      "10.0.1.7:8080",
		OnRevoke:  s.clear,
	})
	if err != nil {
		log.Print(err)
		return
	}
	s.owner = o
	if err := s.setOnline(leasehold.KeyOf("ann"), true); err != nil {
		log.Print(err) // a caller would look for the owner again
	}
	if err := o.Close(ctx); err != nil {
		log.Print(err)
	}
}

type user struct {
	online     bool
	generation leasehold.Generation // under which this was written
}

type server struct {
	owner *owner.Owner
	mu    sync.Mutex
	users map[leasehold.Key]user
}

func (s *server) setOnline(key leasehold.Key, online bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease, ok := s.owner.Check(key)
	u := s.users[key]
	if !ok || u.generation > lease.Generation {
		return leasehold.NotOwner
	}
	if u.generation < lease.Generation {
		u = user{generation: lease.Generation} // what is left of an earlier tenure
	}
	u.online = online
	s.users[key] = u
	if !s.owner.Held(lease) {
		return leasehold.NotOwner
	}
	return nil
}

// clear frees the memory of what has ended. That is all it is for: generations
// keep old state from being used, and the range may be ours again by now.
func (s *server) clear(leases []leasehold.Lease, _ leasehold.Cause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, u := range s.users {
		for _, l := range leases {
			if l.Range.Contains(key) && u.generation <= l.Generation {
				delete(s.users, key)
			}
		}
	}
}
