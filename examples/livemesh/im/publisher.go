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

// PublisherConfig says how a publisher reaches the servers, and learns of losses.
type PublisherConfig struct {
	// Client and Lookup are required. The lookup is that of the servers' namespace, and
	// stays the caller's, to be closed after [Publisher.Run] has returned.
	Client *Client
	Lookup *lookup.Lookup
	// Refresh is the time after which a user that was not written is refreshed. Default a
	// third of [TTL], so that two attempts may fail.
	Refresh time.Duration
}

// Stats are what a publisher has done.
type Stats struct {
	Users       int // that it publishes now
	Republished int // users that were lost, and that it has published again
	Refreshed   int // requests to let a user last
	Dropped     int // users that it does not publish any more, though they were not withdrawn
}

// A Publisher is the frontend's side of presence (PRS 2 and 7): it publishes users, lets
// them last, and publishes those again whose server has died. It keeps what was published of
// each user, and restores it for as long as it runs.
//
// It does not poll. The lookup reports which ranges were lost, and under which lease; users in
// such a range that have not been written since are published again, and no others. If the
// lookup does not know the lease, because the loss was long ago, the users in question are
// refreshed first. While the lookup is out of contact nothing is sent: losses come when
// contact is restored.
//
// All methods may be called from many goroutines at once; those for one user wait for each
// other. A loss costs a look at each user, and one request for each that is lost.
type Publisher struct {
	cfg     PublisherConfig
	session string
	from    leasehold.LSN // losses after that concern us
	wake    chan struct{} // there may be users to repair

	mu    sync.Mutex
	users map[string]*user
	stats Stats
}

type user struct {
	name string
	key  leasehold.Key
	turn *semaphore.Weighted // held while requests about the user are under way

	// These belong to the goroutine that has the turn.
	on      SignOn               // Known is the last status that was acknowledged
	written leasehold.Generation // of the lease under which it was last written; 0 if it never was
	lost    bool                 // it was there, and is not
	gone    bool                 // it is not published any more

	// These are guarded by the publisher's lock.
	fresh     time.Time // when it was last written or refreshed
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

// Publish publishes a user from now on, or all that is known of one anew. It returns nil when
// a server has it.
//
// It fails with [leasehold.ErrInvalid] if something is wrong with it, and with
// [leasehold.ErrExists] if another session publishes the user, who is not published here then;
// with [ErrUnsaid] if the context ended before it was this call's turn. After any other error
// [Publisher.Run] retries until it succeeds.
func (p *Publisher) Publish(ctx context.Context, name string, what Presence) error {
	return p.set(ctx, name, true, Change{Address: &what.Address, Status: &what.Status, IP: &what.IP}, func(u *user) error {
		return p.signOn(ctx, u, leasemap.Version{})
	})
}

// takeOvers is how often TakeOver retries while others change the user.
const takeOvers = 5

// TakeOver is Publish for a user whom another session may publish: the user has come here.
// The other one finds out with its next request about the user, and drops the user then. If
// it fails it is to be repeated.
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

// Update changes what is published of a user: what is nil in the change stays, and its session
// and condition do not count. It returns nil when a server has it, and fails as Publish does; with
// [leasehold.ErrNotFound] if the user is not published here.
func (p *Publisher) Update(ctx context.Context, name string, change Change) error {
	return p.set(ctx, name, false, change, func(u *user) error {
		change.Session, change.If = p.session, leasemap.Version{}
		there, err := p.cfg.Client.Change(ctx, name, change)
		if errors.Is(err, leasehold.ErrNotFound) { // it was lost, and the report of that is under way
			u.lost = true
			return p.signOn(ctx, u, leasemap.Version{})
		}
		return p.wrote(u, there, err)
	})
}

// Withdraw ends the publication of a user. If it fails, the user is there for as long as the
// last TTL lasts.
func (p *Publisher) Withdraw(ctx context.Context, name string) error {
	u, err := p.take(ctx, name, false)
	if err != nil {
		return err
	}
	defer u.turn.Release(1)
	p.forget(u)
	return p.cfg.Client.SignOff(ctx, name, p.session)
}

// Stats returns what it has done so far.
func (p *Publisher) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Users = len(p.users)
	return s
}

// set changes what is to be published of a user, and sends it.
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
		p.forget(u)
	case errors.Is(err, leasehold.ErrInvalid):
		if u.on = was; was.Session == "" { // it was never published
			p.forget(u)
		}
	default: // it may have been carried out or not
		p.require(need{write: true}, func(other *user) bool { return other == u })
	}
	return err
}

// signOn sends all of a user, in place of another session's version if there is one.
func (p *Publisher) signOn(ctx context.Context, u *user, over leasemap.Version) error {
	on := u.on
	on.If = over
	there, err := p.cfg.Client.SignOn(ctx, u.name, on)
	return p.wrote(u, there, err)
}

// wrote records that a server has what was sent, unless that failed.
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

// take returns a user whose turn the caller has.
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
		u.turn.Release(1) // it was removed from the map meanwhile
	}
}

// ErrUnsaid is what a [Publisher] fails with if the context ended while another request about
// the same user was under way: what was to be published never is.
var ErrUnsaid = errors.New("nothing was said")

// await waits for the turn. If it is free it is taken even if the context has ended, so that a
// user that was just created is always written or forgotten.
func (u *user) await(ctx context.Context) error {
	if u.turn.TryAcquire(1) || u.turn.Acquire(ctx, 1) == nil {
		return nil
	}
	return leasehold.Errorf("wait for turn", leasehold.ErrUnavailable, u.name, "%w: %w", ErrUnsaid, context.Cause(ctx))
}

// forget ends the publication of a user whose turn the caller has.
func (p *Publisher) forget(u *user) {
	u.gone = true
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.users, u.name)
}
