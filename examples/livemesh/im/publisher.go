package im

import (
	"cmp"
	"context"
	"crypto/rand"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

// PublisherConfig configures a publisher.
type PublisherConfig struct {
	// Client and Lookup are required. The lookup follows the servers' namespace. The caller
	// closes it after [Publisher.Run] has returned.
	Client *Client
	Lookup *lookup.Lookup
	// Refresh is the refresh interval of a user without writes. Default: a third of [TTL],
	// so that two attempts may fail.
	Refresh time.Duration
}

// Stats are counters of a publisher.
type Stats struct {
	Users       int // published now
	Republished int // lost users that were published again
	Dropped     int // users that another session has published, or a server refused
}

// A Publisher is the frontend's side of presence (PRS 2 and 7): it publishes users, refreshes
// them, and publishes lost users again, as a [lookup.Publisher] does.
type Publisher struct {
	client  *Client
	session string
	users   *lookup.Publisher[Presence]
}

// NewPublisher returns a publisher without users.
func NewPublisher(cfg PublisherConfig) *Publisher {
	p := &Publisher{client: cfg.Client, session: rand.Text()}
	p.users = lookup.NewPublisher(cfg.Lookup, lookup.PublisherConfig[Presence]{Refresh: cmp.Or(cfg.Refresh, TTL/3), Send: p.send})
	return p
}

func (p *Publisher) send(ctx context.Context, name string, what Presence, again bool) (leasehold.Generation, error) {
	version, err := p.client.SignOn(ctx, name, p.session, what, again)
	return version.Generation, err
}

// Run follows losses, publishes lost users again, and refreshes all users, until the context
// ends. Then it returns nil, and users expire after the TTL. It fails if the lookup is closed.
// Call it once, before or after the first Publish: no loss in between is missed.
func (p *Publisher) Run(ctx context.Context) error { return p.users.Run(ctx) }

// Publish publishes a user, or changes its presence. It returns nil when a server has acknowledged
// it. Another session that has published the user drops it.
//
// If it fails with [leasehold.ErrInvalid], nothing was changed. After any other error
// [Publisher.Run] retries until it succeeds.
func (p *Publisher) Publish(ctx context.Context, name string, what Presence) error {
	if err := (&record{what, p.session}).validate(name); err != nil {
		return err
	}
	return p.users.Publish(ctx, name, what)
}

// Withdraw ends the publication of a user. If it fails, the presence expires after the TTL.
func (p *Publisher) Withdraw(ctx context.Context, name string) error {
	published, err := p.users.Withdraw(ctx, name)
	if err != nil || !published {
		return err
	}
	return p.client.SignOff(ctx, name, p.session)
}

// Stats returns the current counters.
func (p *Publisher) Stats() Stats {
	s := p.users.Stats()
	return Stats{Users: s.Names, Republished: s.Republished, Dropped: s.Dropped}
}
