package queue

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// Config says how large queues are, and which services they watch.
type Config struct {
	// Room is how many messages a queue holds. Default 1000.
	Room int
	// Watch are the lookups of other services, by name, whose losses devices receive.
	Watch map[string]*lookup.Lookup
}

// Bounds on a queue.
const (
	MaxMessage   = 64 << 10
	MaxBytes     = 2 << 20 // of all messages of a queue, which must fit into what can be moved
	MaxInterests = 1000
	TTL          = time.Hour // without requests
)

// A Service is one server of queues.
type Service struct {
	cfg       Config
	queues    *leasemap.Map[queue]
	bells     bells
	stop      context.CancelFunc
	following sync.WaitGroup
}

// Join joins the namespace as one of its servers.
func Join(ctx context.Context, as owner.Config, cfg Config) (*Service, error) {
	cfg.Room = cmp.Or(cfg.Room, 1000)
	queues, err := leasemap.Join(ctx, as, leasemap.Config[queue]{TTL: TTL})
	if err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(context.Background())
	s := &Service{cfg: cfg, queues: queues, bells: bells{waiting: make(map[string]*bell)}, stop: stop}
	s.follow(following)
	return s, nil
}

// Close hands all queues over to other servers. They are served until they have gone.
func (s *Service) Close(ctx context.Context) error {
	err := s.queues.Close(ctx)
	s.stop()
	s.following.Wait()
	return err
}

// do operates on a queue, which is made if there is none.
func (s *Service) do(ctx context.Context, name string, operate func(*queue) error) error {
	_, err := s.queues.Do(ctx, name, func(e *leasemap.Entry[queue]) error {
		if !e.Version.Exists() {
			e.Value = queue{Epoch: fmt.Sprintf("%d.%d", e.Next.Generation, e.Next.Number)}
		}
		return operate(&e.Value)
	})
	return err
}

// enqueue adds a message. If there is no room it fails with [leasehold.ErrLimit], unless a
// mark is to be left: then it succeeds, and the device learns that it missed something.
func (s *Service) enqueue(r *jsonhttp.Request) (any, error) {
	body, err := ReadMessage("enqueue", r)
	if err != nil {
		return nil, err
	}
	overflow := r.URL.Query().Get("overflow")
	if overflow != "" && overflow != "mark" {
		return nil, leasehold.Errorf("enqueue", leasehold.ErrInvalid, r.Name, "overflow is %q, want mark or nothing", overflow)
	}
	var receipt Receipt
	err = s.do(r.Context(), r.Name, func(q *queue) error {
		if !q.add(Message{Body: body}, s.cfg.Room) {
			if overflow == "" {
				return leasehold.Errorf("enqueue", leasehold.ErrLimit, r.Name, "the queue is full: it has %d messages that its device has not taken; %d, of %d bytes, are allowed", len(q.Messages), s.cfg.Room, MaxBytes)
			}
			q.miss()
		}
		receipt = Receipt{q.Epoch, q.Last}
		return nil
	})
	if err == nil {
		s.bells.ring(r.Name)
	}
	return receipt, err
}

// receive returns the messages of a queue after a place, and waits for the first if there
// is none. If the place is in another epoch of the queue, messages may have been lost: the
// batch says so, and has all messages that there are.
func (s *Service) receive(ctx context.Context, name string, at Place, wait time.Duration) (Batch, error) {
	deadline := time.After(wait)
	for {
		rung, forget := s.bells.wait(name)
		b, err := s.look(ctx, name, at)
		if err != nil || len(b.Messages) > 0 || b.Lost || wait <= 0 {
			forget()
			return b, err
		}
		at.Epoch = b.Epoch
		select {
		case <-rung:
		case <-deadline:
			wait = 0
		case <-ctx.Done():
			forget()
			return Batch{}, leasehold.Errorf("receive", leasehold.ErrUnavailable, name, "%w", context.Cause(ctx))
		}
		forget()
	}
}

// look returns what is after a place, what was lost of other services included. It lets the
// queue last for another TTL.
func (s *Service) look(ctx context.Context, name string, at Place) (Batch, error) {
	var b Batch
	err := s.do(ctx, name, func(q *queue) error {
		s.addLosses(q)
		b = Batch{Epoch: q.Epoch, Lost: at.Epoch != "" && at.Epoch != q.Epoch, Messages: q.Messages}
		if b.Lost || at.Epoch == "" {
			return nil
		}
		later, err := q.after(name, at.Have)
		b.Messages = later
		return err
	})
	if b.Messages == nil {
		b.Messages = []Message{} // it is a list, also where there is none
	}
	return b, err
}

// ack removes the messages up to a place, because the device has them. In another epoch of the
// queue there is nothing to remove.
func (s *Service) ack(ctx context.Context, name string, at Place) error {
	return s.do(ctx, name, func(q *queue) error {
		if at.Epoch != q.Epoch {
			return nil
		}
		later, err := q.after(name, at.Have)
		if err == nil {
			q.Messages = slices.Clone(later) // so that the others are freed
		}
		return err
	})
}

// bells wake devices that wait for messages.
type bells struct {
	mu      sync.Mutex
	waiting map[string]*bell
}

type bell struct {
	rung    chan struct{}
	waiters int
}

// wait returns what is closed when the bell is rung; the caller says when it no longer
// waits.
func (b *bells) wait(name string) (rung <-chan struct{}, forget func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.waiting[name]
	if one == nil {
		one = &bell{rung: make(chan struct{})}
		b.waiting[name] = one
	}
	one.waiters++
	return one.rung, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if one.waiters--; one.waiters == 0 && b.waiting[name] == one {
			delete(b.waiting, name)
		}
	}
}

// ring wakes the devices that wait for messages of some queues.
func (b *bells) ring(names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		if one := b.waiting[name]; one != nil {
			close(one.rung)
			delete(b.waiting, name)
		}
	}
}

func (b *bells) ringAll() {
	b.mu.Lock()
	names := slices.Collect(maps.Keys(b.waiting))
	b.mu.Unlock()
	b.ring(names...)
}
