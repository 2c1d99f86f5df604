package feed

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// Config configures a service.
type Config struct {
	// Room is the maximum number of activities in a feed; the oldest are dropped. Default
	// 200, at most 300: a feed must fit into one record of a transfer.
	Room int
	// MaxWorking is the maximum number of concurrent requests. Others are refused at once:
	// a queue would hide the overload from callers. Each may have a feed and its parsed
	// form in memory. Default 32.
	MaxWorking int
}

const (
	// TTL is the lifetime of a feed after the last post.
	TTL = 24 * time.Hour
	// window is the length of a coalescing window. Longer ones make fewer entries, shorter
	// ones have more precise times.
	window = time.Hour
)

// maxRoom keeps a feed below 4 MiB, the maximum of a leasemap record: an activity has about
// 1,850 bytes, and JSON escapes make that at most six times longer.
const maxRoom = 300

func (c *Config) validate() error {
	c.Room = cmp.Or(c.Room, 200)
	c.MaxWorking = cmp.Or(c.MaxWorking, 32)
	if c.Room < 0 || c.Room > maxRoom || c.MaxWorking < 0 {
		return leasehold.Errorf("join", leasehold.ErrInvalid, "", "want positive numbers, 0 for a default, and Room of up to %d: %+v", maxRoom, *c)
	}
	return nil
}

// A Service is one server of feeds. It is safe for concurrent use.
type Service struct {
	cfg     Config
	feeds   *leasemap.Map[state]
	formats []format
	working chan struct{} // a semaphore
}

type state struct {
	Activities []Activity `json:"activities"` // sorted
}

// Join joins the namespace as an owner.
func Join(ctx context.Context, as owner.Config, cfg Config) (*Service, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m, err := leasemap.Join(ctx, as, leasemap.Config[state]{TTL: TTL, Weak: true})
	if err != nil {
		return nil, err
	}
	return &Service{cfg, m, formats(), make(chan struct{}, cfg.MaxWorking)}, nil
}

// Close transfers all feeds to other servers. They are served during and after the transfer.
func (s *Service) Close(ctx context.Context) error { return s.feeds.Close(ctx) }

// Owner returns the service's owner.
func (s *Service) Owner() *owner.Owner { return s.feeds.Owner() }

func (s *Service) addItems(r *jsonhttp.Request) (any, error) {
	document, err := r.Read(MaxBytes)
	if err != nil {
		return nil, err
	}
	activities, untitled, err := parse(document, time.Now())
	if err != nil {
		return nil, jsonhttp.WithStatus(http.StatusUnprocessableEntity, leasehold.Errorf("add items", leasehold.ErrInvalid, r.Name, "this is no feed, and nothing was added: %w", err))
	}
	if len(activities)+untitled > MaxItems {
		return nil, jsonhttp.TooLarge(r.Name, "the feed has %d items, and %d are allowed: post the latest", len(activities)+untitled, MaxItems)
	}
	receipt, err := s.add(r, activities...)
	receipt.Ignored += untitled
	return receipt, err
}

func (s *Service) addEvent(r *jsonhttp.Request, e Event) (any, error) {
	a, err := e.activity(r.Name, time.Now())
	if err != nil {
		return nil, err
	}
	return s.add(r, a)
}

// add merges activities. If all are duplicates, it only extends the TTL: the ETag stays.
func (s *Service) add(r *jsonhttp.Request, activities ...Activity) (receipt Receipt, err error) {
	if err := validUser(r.Name); err != nil {
		return Receipt{}, err
	}
	_, err = s.feeds.Do(r.Context(), r.Name, func(e *leasemap.Entry[state]) error {
		e.Value.Activities, receipt = merge(e.Value.Activities, activities, s.cfg.Room)
		if receipt.Added == 0 {
			e.Touch()
		}
		return nil
	})
	return receipt, err
}

func validUser(user string) error {
	if user == "" || len(user) > MaxName || printable(user) != user {
		return leasehold.Errorf("feed", leasehold.ErrInvalid, line(user, MaxName), "want a name of up to %d bytes of printable text", MaxName)
	}
	return nil
}
