package im

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

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
	Refreshed   int // refresh requests
	Dropped     int // users that another session took over or a server refused
}

// A Publisher is the frontend's side of presence (PRS 2 and 7): it publishes users, refreshes
// them, and publishes lost users again. It keeps the published state of each user.
//
// It does not poll. The lookup reports which ranges were lost, and with which generation; users
// in such a range that have not been written since are published again, and no others. If the
// generation is unknown, because the loss was long ago, the users are refreshed first. While
// the lookup has no contact nothing is sent: losses are reported when contact is restored.
//
// A Publisher is safe for concurrent use; calls for one user are serialized. A loss costs a scan
// of all users, and one request for each lost user.
type Publisher struct {
	cfg     PublisherConfig
	session string
	from    leasehold.LSN // later losses are handled
	wake    chan struct{} // users may need repair

	mu    sync.Mutex
	users map[string]*user
	stats Stats
}

type user struct {
	name string
	key  leasehold.Key
	turn *semaphore.Weighted // held during requests about the user

	// Guarded by turn.
	on      SignOn               // Known is the last acknowledged status
	written leasehold.Generation // of the lease of the last write; 0 if never written
	lost    bool
	gone    bool // removed from the publisher

	// Guarded by Publisher.mu.
	fresh     time.Time // last write or refresh
	need      need
	repairing bool
}

// NewPublisher returns a publisher without users.
func NewPublisher(cfg PublisherConfig) (*Publisher, error) {
	if cfg.Client == nil || cfg.Lookup == nil || cfg.Refresh < 0 {
		return nil, leasehold.Errorf("new publisher", leasehold.ErrInvalid, "", "want a Client and a Lookup, and Refresh of 0 or more")
	}
	cfg.Refresh = cmp.Or(cfg.Refresh, TTL/3)
	return &Publisher{
		cfg: cfg, session: rand.Text(), from: cfg.Lookup.LSN(), wake: make(chan struct{}, 1), users: make(map[string]*user),
	}, nil
}

// Publish publishes a user, or replaces its presence. It returns nil when a server has
// acknowledged it.
//
// It fails with [leasehold.ErrInvalid] if the presence is invalid, with [leasehold.ErrExists] if
// another session publishes the user, which is then not published here, and with [ErrNotSent] if
// the context ended while it waited for another call. After any other error [Publisher.Run]
// retries until it succeeds.
func (p *Publisher) Publish(ctx context.Context, name string, what Presence) error {
	return p.set(ctx, name, true, Change{Address: &what.Address, Status: &what.Status, IP: &what.IP}, func(u *user) error {
		return p.signOn(ctx, u, leasemap.Version{})
	})
}

// takeOvers bounds the attempts of TakeOver while other sessions change the user.
const takeOvers = 5

// TakeOver is Publish for a user that another session may publish. The other session drops the
// user after its next request about it. If TakeOver fails, call it again.
func (p *Publisher) TakeOver(ctx context.Context, name string, what Presence) error {
	return p.set(ctx, name, true, Change{Address: &what.Address, Status: &what.Status, IP: &what.IP}, func(u *user) (err error) {
		for range takeOvers {
			there, failed := p.cfg.Client.Get(ctx, name)
			if failed != nil && !errors.Is(failed, leasehold.ErrNotFound) {
				return failed
			}
			err = p.signOn(ctx, u, there.Version)
			if !errors.Is(err, leasehold.ErrStale) && !errors.Is(err, leasehold.ErrExists) {
				break
			}
		}
		return err
	})
}

// Update changes the presence of a user: nil fields stay, Session and If are ignored. It returns
// nil when a server has acknowledged it, and fails like Publish; with [leasehold.ErrNotFound] if
// the user is not published here.
func (p *Publisher) Update(ctx context.Context, name string, change Change) error {
	return p.set(ctx, name, false, change, func(u *user) error {
		change.Session, change.If = p.session, leasemap.Version{}
		there, err := p.cfg.Client.Change(ctx, name, change)
		if errors.Is(err, leasehold.ErrNotFound) { // lost, and not yet reported
			u.lost = true
			return p.signOn(ctx, u, leasemap.Version{})
		}
		return p.wrote(u, there, err)
	})
}

// Withdraw ends the publication of a user. If it fails, the presence expires after the TTL.
func (p *Publisher) Withdraw(ctx context.Context, name string) error {
	u, err := p.take(ctx, name, false)
	if err != nil {
		return err
	}
	defer u.turn.Release(1)
	p.drop(u)
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

// set changes the state of a user, and sends it.
func (p *Publisher) set(ctx context.Context, name string, create bool, change Change, send func(*user) error) error {
	u, err := p.take(ctx, name, create)
	if err != nil {
		return err
	}
	defer u.turn.Release(1)
	was := u.on
	next := was.presence()
	change.apply(&next)
	u.on = SignOn{Session: p.session, Address: next.Address, Status: next.Status, IP: next.IP, Known: was.Known}
	err = send(u)
	switch {
	case err == nil:
	case errors.Is(err, leasehold.ErrExists), errors.Is(err, leasehold.ErrStale):
		p.drop(u)
	case errors.Is(err, leasehold.ErrInvalid):
		if u.on = was; was.Session == "" { // never published
			p.drop(u)
		}
	default: // outcome unknown
		p.require(need{write: true}, func(other *user) bool { return other == u })
	}
	return err
}

// signOn sends the whole state of a user, replacing another session's version if given.
func (p *Publisher) signOn(ctx context.Context, u *user, over leasemap.Version) error {
	on := u.on
	on.If = over
	there, err := p.cfg.Client.SignOn(ctx, u.name, on)
	return p.wrote(u, there, err)
}

// wrote records an acknowledged write; an error is returned unchanged.
func (p *Publisher) wrote(u *user, there Presence, err error) error {
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if u.lost {
		p.stats.Republished++
	}
	u.fresh = time.Now()
	u.on.Known, u.written, u.lost = there.Status, there.Version.Generation, false
	return nil
}

// take acquires the turn of a user.
func (p *Publisher) take(ctx context.Context, name string, create bool) (*user, error) {
	for {
		p.mu.Lock()
		u := p.users[name]
		if u == nil && create {
			u = &user{name: name, key: leasehold.KeyOf(name), turn: semaphore.NewWeighted(1), fresh: time.Now()}
			p.users[name] = u
		}
		p.mu.Unlock()
		if u == nil {
			return nil, leasehold.Errorf("find user", leasehold.ErrNotFound, name, "the user is not published here")
		}
		if err := u.await(ctx); err != nil {
			return nil, err
		}
		if !u.gone {
			return u, nil
		}
		u.turn.Release(1) // removed meanwhile
	}
}

// ErrNotSent is the error of a [Publisher] if the context ended while it waited for another call
// for the same user: the change is discarded.
var ErrNotSent = errors.New("nothing was sent")

// await waits for the turn. A free turn is taken even if the context has ended, so that a user
// that was just created is always written or removed.
func (u *user) await(ctx context.Context) error {
	if u.turn.TryAcquire(1) || u.turn.Acquire(ctx, 1) == nil {
		return nil
	}
	return leasehold.Errorf("wait for turn", leasehold.ErrUnavailable, u.name, "%w: %w", ErrNotSent, context.Cause(ctx))
}

// drop removes a user. The caller holds its turn.
func (p *Publisher) drop(u *user) {
	u.gone = true
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.users, u.name)
}
