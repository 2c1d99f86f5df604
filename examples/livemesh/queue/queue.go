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

// Config configures a service.
type Config struct {
	// Room is the maximum number of messages in a queue. Default 1000.
	Room int
	// Watch are the lookups of other services, by name, whose losses are reported to devices.
	Watch map[string]*lookup.Lookup
}

// Bounds on a queue.
const (
	MaxMessage   = 64 << 10
	MaxBytes     = 2 << 20 // of all messages of a queue, which must fit into one record of a transfer
	MaxInterests = 1000
	TTL          = time.Hour // without requests
)

// A Service is one server of queues. It is safe for concurrent use.
type Service struct {
	cfg       Config
	queues    *leasemap.Map[queue]
	wakeups   wakeups
	stop      context.CancelFunc
	following sync.WaitGroup
}

// Join joins the namespace as an owner.
func Join(ctx context.Context, as owner.Config, cfg Config) (*Service, error) {
	cfg.Room = cmp.Or(cfg.Room, 1000)
	queues, err := leasemap.Join(ctx, as, leasemap.Config[queue]{TTL: TTL})
	if err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(context.Background())
	s := &Service{cfg: cfg, queues: queues, wakeups: wakeups{waiting: make(map[string]*wakeup)}, stop: stop}
	s.follow(following)
	return s, nil
}

// Close transfers all queues to other servers, and serves them until then.
func (s *Service) Close(ctx context.Context) error {
	err := s.queues.Close(ctx)
	s.stop()
	s.following.Wait()
	return err
}

// do runs an operation on a queue, which is created if it does not exist.
func (s *Service) do(ctx context.Context, name string, operate func(*queue) error) error {
	_, err := s.queues.Do(ctx, name, func(e *leasemap.Entry[queue]) error {
		if !e.Version.Exists() {
			e.Value = queue{Epoch: fmt.Sprintf("%d.%d", e.Next.Generation, e.Next.Number)}
		}
		return operate(&e.Value)
	})
	return err
}

// enqueue adds a message. If the queue is full it fails with [leasehold.ErrLimit], or, with
// overflow=mark, leaves a mark for the missed message.
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
				return leasehold.Errorf("enqueue", leasehold.ErrLimit, r.Name, "the queue is full: it has %d messages that its device has not acknowledged; %d, of %d bytes, are allowed", len(q.Messages), s.cfg.Room, MaxBytes)
			}
			q.miss()
		}
		receipt = Receipt{q.Epoch, q.Last}
		return nil
	})
	if err == nil {
		s.wakeups.notify(r.Name)
	}
	return receipt, err
}

// receive returns the messages of a queue after a place, and waits for the first one. If the place
// is in another epoch, the batch reports a loss and has all messages.
func (s *Service) receive(ctx context.Context, name string, at Place, wait time.Duration) (Batch, error) {
	deadline := time.After(wait)
	for {
		notified, done := s.wakeups.wait(name)
		b, err := s.look(ctx, name, at)
		if err != nil || len(b.Messages) > 0 || b.Lost || wait <= 0 {
			done()
			return b, err
		}
		at.Epoch = b.Epoch
		select {
		case <-notified:
		case <-deadline:
			wait = 0
		case <-ctx.Done():
			done()
			return Batch{}, leasehold.Errorf("receive", leasehold.ErrUnavailable, name, "%w", context.Cause(ctx))
		}
		done()
	}
}

// look returns the messages after a place, including reports of losses. It extends the TTL of the
// queue.
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
		b.Messages = []Message{} // encoded as an empty list
	}
	return b, err
}

// ack removes the messages up to a place. A place of another epoch has no effect.
func (s *Service) ack(ctx context.Context, name string, at Place) error {
	return s.do(ctx, name, func(q *queue) error {
		if at.Epoch != q.Epoch {
			return nil
		}
		later, err := q.after(name, at.Have)
		if err == nil {
			q.Messages = slices.Clone(later) // frees the others
		}
		return err
	})
}

// wakeups notify requests that wait for messages.
type wakeups struct {
	mu      sync.Mutex
	waiting map[string]*wakeup
}

type wakeup struct {
	notified chan struct{}
	waiters  int
}

// wait returns a channel that is closed by notify. The caller calls done when it no longer waits.
func (b *wakeups) wait(name string) (notified <-chan struct{}, done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.waiting[name]
	if one == nil {
		one = &wakeup{notified: make(chan struct{})}
		b.waiting[name] = one
	}
	one.waiters++
	return one.notified, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if one.waiters--; one.waiters == 0 && b.waiting[name] == one {
			delete(b.waiting, name)
		}
	}
}

// notify wakes the requests that wait for messages of queues.
func (b *wakeups) notify(names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		if one := b.waiting[name]; one != nil {
			close(one.notified)
			delete(b.waiting, name)
		}
	}
}

func (b *wakeups) notifyAll() {
	b.mu.Lock()
	names := slices.Collect(maps.Keys(b.waiting))
	b.mu.Unlock()
	b.notify(names...)
}
