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

// Config says how feeds are kept.
type Config struct {
	// Room is how many activities a feed has; the oldest go first. Default 200, and 300 at
	// the most: a feed must fit into a message when it is moved.
	Room int
	// MaxWorking is how many requests are at work at a time. More are refused at once:
	// a queue would only hide from callers that they ask for too much. Each may have a
	// feed in memory, and what it was parsed to. Default 32.
	MaxWorking int
}

const (
	// TTL is how long a feed lasts to which nothing is posted.
	TTL = 24 * time.Hour
	// window is how long what one person does is one entry. Longer ones make fewer
	// entries, shorter ones say better when it was.
	window = time.Hour
)

// maxRoom keeps a feed below the 4 MiB of a leasemap's record: an activity has about 1,850
// bytes, which JSON makes six times as long at worst.
const maxRoom = 300

func (c *Config) validate() error {
	c.Room = cmp.Or(c.Room, 200)
	c.MaxWorking = cmp.Or(c.MaxWorking, 32)
	if c.Room < 0 || c.Room > maxRoom || c.MaxWorking < 0 {
		return leasehold.Errorf("join", leasehold.ErrInvalid, "", "want positive numbers, 0 for a default, and Room of up to %d: %+v", maxRoom, *c)
	}
	return nil
}

// A Service is one server of feeds. Its methods may be called from many goroutines at once.
type Service struct {
	cfg     Config
	feeds   *leasemap.Map[state]
	formats []format
	working chan struct{} // has something for each request at work
}

type state struct {
	Activities []Activity `json:"activities"` // sorted
}

// Join joins the namespace as one of its servers.
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

// Close hands all feeds over to other servers. They are served until they have gone, and
// after that what is left here is.
func (s *Service) Close(ctx context.Context) error { return s.feeds.Close(ctx) }

// Owner returns what has joined the namespace.
func (s *Service) Owner() *owner.Owner { return s.feeds.Owner() }

func (s *Service) addItems(r *jsonhttp.Request) (any, error) {
	document, err := r.Read(MaxBytes)
	if err != nil {
		return nil, err
	}
	activities, silent, err := parse(document, time.Now())
	if err != nil {
		return nil, jsonhttp.WithStatus(http.StatusUnprocessableEntity, leasehold.Errorf("add items", leasehold.ErrInvalid, r.Name, "this is no feed, and nothing was added: %w", err))
	}
	if len(activities)+silent > MaxItems {
		return nil, jsonhttp.TooLarge(r.Name, "the feed has %d items, and %d are allowed: post the latest", len(activities)+silent, MaxItems)
	}
	receipt, err := s.add(r, activities...)
	receipt.Ignored += silent
	return receipt, err
}

func (s *Service) addEvent(r *jsonhttp.Request, e Event) (any, error) {
	a, err := e.activity(r.Name, time.Now())
	if err != nil {
		return nil, err
	}
	return s.add(r, a)
}

// add keeps what is new. If nothing is, the feed lasts longer, and readers need not read it
// again.
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
	if user == "" || len(user) > MaxName || legible(user) != user {
		return leasehold.Errorf("feed", leasehold.ErrInvalid, line(user, MaxName), "a user has a name of up to %d bytes, which is text", MaxName)
	}
	return nil
}
