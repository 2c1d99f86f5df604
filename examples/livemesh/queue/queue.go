package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// Config says how large queues are, and what they know.
type Config struct {
	// TTL is how long a queue lasts that nobody touches. Default one hour.
	TTL time.Duration
	// Room is how many messages a queue holds. Default 1000.
	Room int
	// Watch are other services, by name, of whose losses devices are told.
	Watch map[string]*lookup.Lookup
}

// Bounds on what others send.
const (
	MaxMessage   = 64 << 10
	MaxBytes     = 2 << 20 // of all messages of a queue, which must fit into what can be moved
	MaxInterests = 1000
)

// A Service is one server of queues.
type Service struct {
	cfg    Config
	queues *leasemap.Map[queue]
	bells  bells
	news   *news
}

// Join joins the namespace as one of its servers.
func Join(ctx context.Context, as owner.Config, cfg Config) (*Service, error) {
	if cfg.TTL == 0 {
		cfg.TTL = time.Hour
	}
	if cfg.Room == 0 {
		cfg.Room = 1000
	}
	s := &Service{cfg: cfg, bells: newBells()}
	s.news = newNews(s)
	granted := as.OnGrant
	as.OnGrant = func(leases []leasehold.Lease) {
		s.news.arrived() // queues that have come may have been told less than ours
		if granted != nil {
			granted(leases)
		}
	}
	var err error
	if s.queues, err = leasemap.Join(ctx, as, leasemap.Config[queue]{TTL: cfg.TTL}); err != nil {
		return nil, err
	}
	s.news.start()
	return s, nil
}

// Close hands all queues over to other servers. They are served until they have gone.
func (s *Service) Close(ctx context.Context) error {
	err := s.queues.Close(ctx)
	s.news.stop()
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

// Enqueue adds a message. If there is no room it fails with [leasehold.Limit], unless a
// mark is to be left: then it succeeds, and the device learns that it missed something.
func (s *Service) Enqueue(ctx context.Context, name string, body json.RawMessage, mark bool) (Receipt, error) {
	if err := ValidMessage("enqueue", name, body); err != nil {
		return Receipt{}, err
	}
	var receipt Receipt
	err := s.do(ctx, name, func(q *queue) error {
		if !q.add(Message{Body: body}, s.cfg.Room) {
			if !mark {
				return leasehold.Errorf("enqueue", leasehold.Limit, name, "the queue is full: it has %d messages that its device has not taken; %d, of %d bytes, are allowed", len(q.Messages), s.cfg.Room, MaxBytes)
			}
			q.miss()
		}
		receipt = Receipt{q.Epoch, q.Last}
		return nil
	})
	if err == nil {
		s.bells.ring(name)
	}
	return receipt, err
}

// Receive returns the messages of a queue after a place, and waits for the first if there
// is none. Messages that the device has said to have are forgotten; see [Service.Ack]. If
// the place is in another life of the queue, messages may have been lost: it says so, and
// returns all that there are.
func (s *Service) Receive(ctx context.Context, name string, at Place, wait time.Duration) (Batch, error) {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
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
		case <-deadline.C:
			wait = 0
		case <-ctx.Done():
			forget()
			return Batch{}, leasehold.Errorf("receive", leasehold.Unavailable, name, "%w", context.Cause(ctx))
		}
		forget()
	}
}

// look returns what is after a place. It lets the queue last for another TTL.
func (s *Service) look(ctx context.Context, name string, at Place) (Batch, error) {
	var b Batch
	err := s.do(ctx, name, func(q *queue) error {
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

// Ack forgets the messages up to a place, because the device has them. In another life of
// the queue there is nothing to be forgotten.
func (s *Service) Ack(ctx context.Context, name string, at Place) error {
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

// SetInterests says on which names of other services a device depends, in place of what
// was said before.
func (s *Service) SetInterests(ctx context.Context, name string, interests []Interest) error {
	if len(interests) > MaxInterests {
		return leasehold.Errorf("set interests", leasehold.Invalid, name, "%d interests, and %d are allowed", len(interests), MaxInterests)
	}
	for _, i := range interests {
		if err := jsonhttp.ValidName("set interests", "what a device depends on", i.Name); err != nil {
			return err
		}
		if s.cfg.Watch[i.Service] == nil {
			return leasehold.Errorf("set interests", leasehold.Invalid, name, "there is no service %q: want one of %s", i.Service, strings.Join(slices.Sorted(maps.Keys(s.cfg.Watch)), ", "))
		}
	}
	return s.do(ctx, name, func(q *queue) error {
		told := make(map[string]leasehold.LSN)
		for service, l := range s.cfg.Watch {
			told[service] = l.LSN()
			if known, ok := q.Told[service]; ok {
				told[service] = min(known, told[service]) // what it depended on before may have been lost since
			}
		}
		q.Interests, q.Told = slices.Clone(interests), told
		return nil
	})
}
