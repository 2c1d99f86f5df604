package im

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasemap"
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
// them, and publishes lost users again. It keeps the published presence of each user.
//
// It does not poll. The lookup reports which ranges were lost, and with which generation; users
// in such a range that have not been written since are published again, and no others. While
// the lookup has no contact nothing is sent: losses are reported when contact is restored.
//
// A Publisher is safe for concurrent use, but not for concurrent calls for one user. A loss costs
// a scan of all users, and one request for each lost user.
type Publisher struct {
	cfg     PublisherConfig
	session string
	from    leasehold.LSN // later losses are handled
	wake    chan struct{} // users are due

	mu    sync.Mutex
	users map[string]*user
	stats Stats
}

type user struct {
	name string
	key  leasehold.Key
	turn chan struct{} // a lock, held during requests about the user

	// Guarded by Publisher.mu.
	want    Presence
	renew   bool             // the presence was acknowledged before
	written leasemap.Version // the acknowledged version
	fresh   time.Time        // of the last acknowledgement
	due     bool             // to be sent by Run
	sending bool             // by Run
}

// NewPublisher returns a publisher without users.
func NewPublisher(cfg PublisherConfig) *Publisher {
	cfg.Refresh = cmp.Or(cfg.Refresh, TTL/3)
	return &Publisher{
		cfg: cfg, session: rand.Text(), from: cfg.Lookup.LSN(), wake: make(chan struct{}, 1), users: make(map[string]*user),
	}
}

// Publish publishes a user, or changes its presence. It returns nil when a server has acknowledged
// it. Another session that has published the user drops it.
//
// If it fails with [leasehold.ErrInvalid], nothing was changed. After any other error
// [Publisher.Run] retries until it succeeds.
func (p *Publisher) Publish(ctx context.Context, name string, what Presence) error {
	if err := (&record{what, p.session}).validate(name); err != nil {
		return err
	}
	p.mu.Lock()
	u := p.users[name]
	if u == nil {
		u = &user{name: name, key: leasehold.KeyOf(name), turn: make(chan struct{}, 1), fresh: time.Now()}
		p.users[name] = u
	}
	u.want, u.renew, u.due = what, false, true
	p.mu.Unlock()
	return p.send(ctx, u)
}

// Withdraw ends the publication of a user. If it fails, the presence expires after the TTL.
func (p *Publisher) Withdraw(ctx context.Context, name string) error {
	p.mu.Lock()
	u := p.users[name]
	delete(p.users, name)
	p.mu.Unlock()
	if u == nil {
		return nil
	}
	if err := u.await(ctx); err != nil {
		return err
	}
	defer u.done()
	return p.cfg.Client.SignOff(ctx, name, p.session)
}

// Stats returns the current counters.
func (p *Publisher) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Users = len(p.users)
	return s
}

func (u *user) await(ctx context.Context) error {
	select {
	case u.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return leasehold.Errorf("wait for turn", leasehold.ErrUnavailable, u.name, "%w", context.Cause(ctx))
	}
}

func (u *user) done() { <-u.turn }

// send sends the presence of a user, unless it was withdrawn.
func (p *Publisher) send(ctx context.Context, u *user) error {
	if err := u.await(ctx); err != nil {
		p.signal()
		return err
	}
	defer u.done()
	p.mu.Lock()
	what, renew, withdrawn := u.want, u.renew, p.users[u.name] != u
	u.due = false
	p.mu.Unlock()
	if withdrawn {
		return nil
	}
	version, err := p.cfg.Client.SignOn(ctx, u.name, p.session, what, renew)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		if renew && version != u.written {
			p.stats.Republished++
		}
		u.written, u.fresh, u.renew = version, time.Now(), u.want == what
	case errors.Is(err, leasehold.ErrExists), errors.Is(err, leasehold.ErrInvalid):
		delete(p.users, u.name)
		p.stats.Dropped++
	default:
		u.due = true
		p.signal()
	}
	return err
}
