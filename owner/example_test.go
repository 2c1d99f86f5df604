package owner_test

import (
	"context"
	"encoding/binary"
	"log"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// A server that stores in memory which users are online, with the obligations of package
// leasehold.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s := &server{users: make(map[leasehold.Key]user)}
	o, err := owner.Join(ctx, owner.Config{
		Namespace: "presence",
		Managers:  []string{"10.0.0.1:7400", "10.0.0.2:7400", "10.0.0.3:7400"},
		Addr:      "10.0.1.7:8080",
		OnRevoke:  s.clear,
		Mover:     &owner.Mover{Export: s.export, Import: s.take},
	})
	if err != nil {
		log.Print(err)
		return
	}
	s.owner = o
	if err := s.setOnline(leasehold.KeyOf("ann"), true); err != nil {
		log.Print(err) // the caller looks the key up again
	}
	// The ranges move to other servers, with their state. The server must serve requests
	// until Close has returned.
	if err := o.Close(ctx); err != nil {
		log.Print(err)
	}
}

type user struct {
	online     bool
	generation leasehold.Generation // of the last write
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
		return leasehold.ErrNotOwner
	}
	if u.generation < lease.Generation {
		u = user{generation: lease.Generation} // state of an earlier tenure
	}
	u.online = online
	s.users[key] = u
	if !s.owner.Held(lease) {
		return leasehold.ErrIndeterminate // the key may have moved with the change
	}
	return nil
}

// export sends the state of a range to its target. It is small, so
// it is not copied before Stop.
func (s *server) export(_ context.Context, out *owner.Export) error {
	if err := out.Stop(); err != nil {
		return err
	}
	for _, key := range s.online(out) {
		if err := out.Send(binary.BigEndian.AppendUint64(nil, uint64(key))); err != nil {
			return err
		}
	}
	return nil
}

// online returns the keys of the online users of a range. Send may block, so
// it must not be called under the lock.
func (s *server) online(out *owner.Export) []leasehold.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []leasehold.Key
	for key, u := range s.users {
		if u.online && out.Range().Contains(key) && u.generation == out.Generation(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// take keeps the state of an arriving range aside until the lease is granted.
func (s *server) take(_ context.Context, in *owner.Import) (install func(leasehold.Lease), err error) {
	var online []leasehold.Key
	for record, err := range in.Records() {
		if err != nil {
			return nil, err
		}
		online = append(online, leasehold.Key(binary.BigEndian.Uint64(record)))
	}
	return func(lease leasehold.Lease) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, key := range online {
			if lease.Range.Contains(key) {
				s.users[key] = user{online: true, generation: lease.Generation}
			}
		}
	}, nil
}

// clear frees the memory of ended leases. Correctness does not depend on it: generations
// prevent the use of old state, and this server may hold the range again.
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

// A process that checks keys for other processes returns how long the result is valid, from
// the instant at which they sent their request.
func ExampleOwner_Promise() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	o, err := owner.Join(ctx, owner.Config{
		Namespace:          "presence",
		Managers:           []string{"10.0.0.1:7400"},
		Addr:               "10.0.1.7:8080",
		MaxPromise:         time.Second,
		WaitForPredecessor: true,
	})
	if err != nil {
		log.Print(err)
		return
	}
	leases, validFor := o.Promise()
	log.Printf("no other server acts on the keys of %v for %v", leases, validFor)
	if err := o.Close(ctx); err != nil { // waits until the promise expires
		log.Print(err)
	}
}

// Each partition of a queue is consumed by one server at a time. A message is acknowledged with the generation, so that
// the queue refuses a consumer whose lease has ended.
func ExampleEach() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s := &server{users: make(map[leasehold.Key]user)}
	o, err := owner.Join(ctx, owner.Config{
		Namespace: "orders",
		Managers:  []string{"10.0.0.1:7400", "10.0.0.2:7400", "10.0.0.3:7400"},
		Addr:      "10.0.1.7:8080",
		Mover:     &owner.Mover{Export: s.export, Import: s.take},
	})
	if err != nil {
		log.Print(err)
		return
	}
	s.owner = o
	var q queue
	err = owner.Each(ctx, o, func(ctx context.Context, lease leasehold.Lease) error {
		for {
			message, err := q.next(ctx, lease.Range)
			if err != nil {
				return err // called again after a backoff, if the range is still held
			}
			log.Print(message)
			if err := q.acknowledge(ctx, message, lease.Generation); err != nil {
				return err
			}
		}
	})
	log.Print(err)
}

// A queue is a client of a queue with a partition for each range of keys.
type queue struct{}

func (queue) next(ctx context.Context, _ leasehold.Range) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func (queue) acknowledge(context.Context, string, leasehold.Generation) error { return nil }
