package feed

import (
	"cmp"
	"context"
	"crypto/rand"
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
	// 200. An activity has about 1,850 bytes, and JSON escapes make that at most six times
	// longer: 300 fit into one record of a transfer.
	Room int
}

const (
	// MaxBytes is the maximum size of a request.
	MaxBytes = 1 << 20
	// TTL is the lifetime of a feed after the last addition.
	TTL = 24 * time.Hour
)

// A Service is one server of feeds. It is safe for concurrent use.
type Service struct {
	cfg   Config
	feeds *leasemap.Map[state]
}

type state struct {
	Activities []Activity `json:"activities"` // sorted
}

// Join joins the namespace as an owner.
func Join(ctx context.Context, as owner.Config, cfg Config) (*Service, error) {
	cfg.Room = cmp.Or(cfg.Room, 200)
	m, err := leasemap.Join(ctx, as, leasemap.Config[state]{TTL: TTL, Weak: true})
	if err != nil {
		return nil, err
	}
	return &Service{cfg, m}, nil
}

// Close transfers all feeds to other servers. They are served during and after the transfer.
func (s *Service) Close(ctx context.Context) error { return s.feeds.Close(ctx) }

// Owner returns the service's owner.
func (s *Service) Owner() *owner.Owner { return s.feeds.Owner() }

// Handler serves the API. A request for a feed that is being transferred to this server waits
// until the transfer is complete: an earlier addition would be overwritten.
func (s *Service) Handler() http.Handler {
	mux := jsonhttp.NewMux(s.feeds.Owner(), MaxBytes)
	jsonhttp.Handle(mux, "GET /feeds/{name}", s.get)
	jsonhttp.Handle(mux, "PUT /feeds/{name}/items", s.addItems)
	jsonhttp.Handle(mux, "PUT /feeds/{name}/events", s.addEvent)
	return mux
}

func (s *Service) get(r *jsonhttp.Request, _ jsonhttp.None) (*Document, error) {
	have, _, err := s.feeds.Get(r.Name)
	return newDocument(r.Name, have.Activities), err
}

func (s *Service) addItems(r *jsonhttp.Request, document []byte) (none jsonhttp.None, err error) {
	activities, err := parse(document, time.Now())
	if err != nil {
		return none, leasehold.Errorf("add items", leasehold.ErrInvalid, r.Name, "this is no feed, and nothing was added: %w", err)
	}
	return none, s.add(r, activities)
}

func (s *Service) addEvent(r *jsonhttp.Request, e Event) (none jsonhttp.None, err error) {
	a := e.activity(r.Name, time.Now())
	if a.Title == "" {
		return none, leasehold.Errorf("add event", leasehold.ErrInvalid, r.Name, `want a text, such as "is now online"`)
	}
	return none, s.add(r, []Activity{a})
}

func (s *Service) add(r *jsonhttp.Request, activities []Activity) error {
	_, err := s.feeds.Update(r.Context(), r.Name, func(feed *state) error {
		feed.Activities = merge(feed.Activities, activities, s.cfg.Room)
		return nil
	})
	return err
}

// A Client is a client of the service. Readers do not need it: a feed has an address.
type Client struct{ jsonhttp.Client }

// Add adds the items of a feed in RSS, Atom or JSON Feed. It is idempotent.
func (c *Client) Add(ctx context.Context, user string, document []byte) error {
	return c.Do(ctx, http.MethodPut, jsonhttp.Path("feeds", user, "items"), document)
}

// Report adds an event. A repetition with the same ID has no effect.
func (c *Client) Report(ctx context.Context, user string, e Event) error {
	e.ID = cmp.Or(e.ID, rand.Text())
	return c.Do(ctx, http.MethodPut, jsonhttp.Path("feeds", user, "events"), e)
}

// Get returns the feed of a user. A missing feed has no items.
func (c *Client) Get(ctx context.Context, user string) (Document, error) {
	return jsonhttp.Call[Document](ctx, c.Client, http.MethodGet, jsonhttp.Path("feeds", user), nil)
}
