package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasehttp"
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
	MaxWait      = time.Minute // of one request
	TTL          = time.Hour   // without requests
)

// maxRequest bounds a request in bytes: the largest list of interests.
const maxRequest = 1 << 20

// A Service is one server of queues. It is safe for concurrent use.
type Service struct {
	cfg    Config
	queues *leasemap.Map[queue]
	losses *losses
}

// Join joins the namespace as an owner.
func Join(ctx context.Context, as owner.Config, cfg Config) (*Service, error) {
	cfg.Room = cmp.Or(cfg.Room, 1000)
	queues, err := leasemap.Join(ctx, as, leasemap.Config[queue]{TTL: TTL})
	if err != nil {
		return nil, err
	}
	return &Service{cfg, queues, followLosses(cfg.Watch)}, nil
}

// Close transfers all queues to other servers, and serves them until then.
func (s *Service) Close(ctx context.Context) error {
	defer s.losses.stop()
	return s.queues.Close(ctx)
}

// Handler serves the API. Requests that wait for messages end when the lease does.
func (s *Service) Handler() http.Handler {
	mux := jsonhttp.NewMux(s.queues.Owner(), maxRequest)
	jsonhttp.Handle(mux, "POST /queues/{name}/messages", s.enqueue)
	jsonhttp.Handle(mux, "GET /queues/{name}/messages", s.receive)
	jsonhttp.Handle(mux, "PUT /queues/{name}/interests", s.setInterests)
	return leasehttp.Middleware(s.queues.Owner(), jsonhttp.Key())(mux)
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
func (s *Service) enqueue(r *jsonhttp.Request, body json.RawMessage) (Receipt, error) {
	if len(body) > MaxMessage {
		return Receipt{}, leasehold.Errorf("enqueue", leasehold.ErrInvalid, r.Name, "a message of %d bytes, %d are allowed", len(body), MaxMessage)
	}
	var receipt Receipt
	var waiting chan struct{}
	err := s.do(r.Context(), r.Name, func(q *queue) error {
		if !q.add(Message{Body: body}, s.cfg.Room) {
			if r.URL.Query().Get("overflow") != "mark" {
				return leasehold.Errorf("enqueue", leasehold.ErrLimit, r.Name, "the queue is full: it has %d messages that its device has not acknowledged; %d, of %d bytes, are allowed", len(q.Messages), s.cfg.Room, MaxBytes)
			}
			q.miss()
		}
		receipt = Receipt{q.Epoch, q.Last}
		waiting, q.changed = q.changed, nil
		return nil
	})
	if err == nil && waiting != nil {
		close(waiting)
	}
	return receipt, err
}

// receive acknowledges the messages up to a place, returns the later ones, and waits for the first
// one. If the place is in another epoch, the batch reports a loss and has all messages.
func (s *Service) receive(r *jsonhttp.Request, _ jsonhttp.None) (Batch, error) {
	at, wait, err := parseReceive(r)
	if err != nil {
		return Batch{}, err
	}
	deadline := time.After(wait)
	for {
		lost := s.losses.next()
		b, changed, err := s.look(r.Context(), r.Name, at)
		if err != nil || len(b.Messages) > 0 || b.Lost || wait <= 0 {
			return b, err
		}
		at.Epoch = b.Epoch
		select {
		case <-changed:
		case <-lost:
		case <-deadline:
			wait = 0
		case <-r.Context().Done():
			return Batch{}, leasehold.Errorf("receive", leasehold.ErrUnavailable, r.Name, "%w", context.Cause(r.Context()))
		}
	}
}

// look acknowledges the messages up to a place, and returns the later ones, including reports of
// losses. It extends the TTL of the queue. Changed is closed when a message is enqueued.
func (s *Service) look(ctx context.Context, name string, at Place) (b Batch, changed <-chan struct{}, err error) {
	err = s.do(ctx, name, func(q *queue) error {
		s.addLosses(q)
		if err := q.acknowledge(name, at); err != nil {
			return err
		}
		if q.changed == nil {
			q.changed = make(chan struct{})
		}
		changed = q.changed
		b = Batch{Epoch: q.Epoch, Lost: at.Epoch != "" && at.Epoch != q.Epoch, Messages: q.Messages}
		return nil
	})
	return b, changed, err
}

// parseReceive returns the place and the wait of a request.
func parseReceive(r *jsonhttp.Request) (at Place, wait time.Duration, err error) {
	query := r.URL.Query()
	at.Epoch = query.Get("epoch")
	_, err = fmt.Sscan(cmp.Or(query.Get("after"), "0"), &at.Have)
	if err != nil || at.Epoch == "" && at.Have > 0 {
		return at, 0, leasehold.Errorf("receive", leasehold.ErrInvalid, r.Name, "after is %q, want the number of a message, with its epoch", query.Get("after"))
	}
	wait, err = time.ParseDuration(cmp.Or(query.Get("wait"), "0s"))
	if err != nil || wait < 0 || wait > MaxWait {
		return at, 0, leasehold.Errorf("receive", leasehold.ErrInvalid, r.Name, "wait is %q, want a duration of up to %v, for example 30s", query.Get("wait"), MaxWait)
	}
	return at, wait, nil
}

// setInterests replaces the interests of a device.
func (s *Service) setInterests(r *jsonhttp.Request, interests []Interest) (none jsonhttp.None, err error) {
	const op = "set interests"
	if len(interests) > MaxInterests {
		return none, leasehold.Errorf(op, leasehold.ErrInvalid, r.Name, "%d interests, %d are allowed", len(interests), MaxInterests)
	}
	for _, i := range interests {
		if err := jsonhttp.ValidName(op, "an interest", i.Name); err != nil {
			return none, err
		}
		if s.cfg.Watch[i.Service] == nil {
			return none, leasehold.Errorf(op, leasehold.ErrInvalid, r.Name, "unknown service %q: want one of %s", i.Service, strings.Join(slices.Sorted(maps.Keys(s.cfg.Watch)), ", "))
		}
	}
	return none, s.do(r.Context(), r.Name, func(q *queue) error {
		s.addLosses(q) // of the previous interests
		q.Interests = interests
		return nil
	})
}
