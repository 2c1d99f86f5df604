package im

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

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

	// Session is who publishes: different for every publisher, and for every start of
	// one. Default: a random text.
	Session string
	// Refresh is how old what was said of a user becomes before it is said to last.
	// Default a third of [UsualTTL], so that two may fail.
	Refresh time.Duration
	// Parallel is how many users are repaired or refreshed at a time. Default 16.
	Parallel int
	// Logger hears of losses, and of users whom others have taken over. Default: nobody
	// does.
	Logger *slog.Logger
}

// Stats are what a publisher has done.
type Stats struct {
	Users       int // that it publishes now
	Republished int // users that were lost, and that it has published again
	Refreshed   int // requests to let a user last
	Dropped     int // users that it does not publish any more though nobody has withdrawn them
}

// A Publisher is the frontend's side of presence (PRS 2 and 7): it publishes users, lets
// them last, and publishes those again whose server has died. It keeps what it has said of
// each user, and makes it true again for as long as it runs.
//
// It does not ask whether users are still there. The lookup tells which ranges were lost, and
// under which lease; whoever is in such a range and has not been written since is published
// again, and nobody else. Where the lookup does not know under which lease, because the loss was
// long ago, each user in question is asked about first. While the lookup is out of contact,
// nothing is sent: losses come when contact is restored.
//
// All methods may be called from many goroutines at once; those for one user wait for each
// other. A loss costs a look at each user, and no request but for those that are lost.
type Publisher struct {
	cfg  PublisherConfig
	from leasehold.LSN // whatever is lost after that concerns us
	work *repairs

	mu    sync.Mutex
	users map[string]*user
	stats Stats
}

// NewPublisher returns a publisher without users.
func NewPublisher(cfg PublisherConfig) (*Publisher, error) {
	if cfg.Client == nil || cfg.Lookup == nil {
		return nil, leasehold.Errorf("new publisher", leasehold.Invalid, "", "want a Client and a Lookup")
	}
	if cfg.Session == "" {
		cfg.Session = rand.Text()
	}
	if cfg.Refresh == 0 {
		cfg.Refresh = UsualTTL / 3
	}
	if cfg.Parallel == 0 {
		cfg.Parallel = 16
	}
	if cfg.Refresh < 0 || cfg.Parallel < 0 {
		return nil, leasehold.Errorf("new publisher", leasehold.Invalid, "", "Refresh is %v and Parallel %d, want more than that", cfg.Refresh, cfg.Parallel)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Publisher{cfg: cfg, from: cfg.Lookup.LSN(), work: newRepairs(), users: make(map[string]*user)}, nil
}

// Publish publishes a user from now on, or all that is known of one anew. It returns nil when
// a server has it.
//
// It fails with [leasehold.Invalid] if something is wrong with it, and with
// [leasehold.Exists] if another session publishes the user, who is not published here then;
// with [ErrUnsaid] if the context ended before it was this call's turn. After any other error
// it is tried again by [Publisher.Run] until it is there.
func (p *Publisher) Publish(ctx context.Context, name string, what Presence) error {
	u, err := p.take(ctx, name, true)
	if err != nil {
		return err
	}
	defer u.yield()
	was := u.set(p.cfg.Session, what)
	return p.settle(u, was, p.signOn(ctx, u, leasemap.Version{}))
}

// TakeOver is Publish for a user whom another session may publish: the user has come here.
// The other one learns of it when it next says something of the user, and drops the user
// then. If it fails it is to be repeated.
func (p *Publisher) TakeOver(ctx context.Context, name string, what Presence) error {
	u, err := p.take(ctx, name, true)
	if err != nil {
		return err
	}
	defer u.yield()
	was := u.set(p.cfg.Session, what)
	for range takeOvers {
		there, failed := p.cfg.Client.Get(ctx, name)
		if failed != nil && !errors.Is(failed, leasehold.NotFound) {
			return p.settle(u, was, failed)
		}
		err = p.signOn(ctx, u, there.Version)
		if !errors.Is(err, leasehold.Stale) && !errors.Is(err, leasehold.Exists) {
			break
		}
	}
	return p.settle(u, was, err)
}

// takeOvers is how often it is tried to take over while others change the user.
const takeOvers = 5

// Update changes what is published of a user: what is nil in the change stays, and its session
// and condition do not count. It returns nil when a server has it, and fails as Publish does; with
// [leasehold.NotFound] if the user is not published here.
func (p *Publisher) Update(ctx context.Context, name string, change Change) error {
	u, err := p.take(ctx, name, false)
	if err != nil {
		return err
	}
	defer u.yield()
	was := u.on
	next := Presence{Address: was.Address, Status: was.Status, IP: was.IP}
	change.apply(&next)
	u.set(p.cfg.Session, next)
	change.Session, change.If = p.cfg.Session, leasemap.Version{}
	there, err := p.cfg.Client.Change(ctx, name, change)
	switch {
	case errors.Is(err, leasehold.NotFound): // it was lost, and the news of it is under way
		u.lost = true
		err = p.signOn(ctx, u, leasemap.Version{})
	case err == nil:
		p.wrote(u, there)
	}
	return p.settle(u, was, err)
}

// Withdraw ends the publication of a user. If it fails, the user is there for as long as the
// last TTL lasts.
func (p *Publisher) Withdraw(ctx context.Context, name string) error {
	u, err := p.take(ctx, name, false)
	if err != nil {
		return err
	}
	defer u.yield()
	p.forget(u)
	return p.cfg.Client.SignOff(ctx, name, p.cfg.Session)
}

// Stats returns what it has done so far.
func (p *Publisher) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Users = len(p.users)
	return s
}

// settle decides what becomes of a user of whom something was said, given the error.
func (p *Publisher) settle(u *user, was SignOn, err error) error {
	switch {
	case err == nil:
	case errors.Is(err, leasehold.Exists), errors.Is(err, leasehold.Stale):
		p.forget(u)
	case errors.Is(err, leasehold.Invalid):
		if u.on = was; was.Session == "" { // it never was
			p.forget(u)
		}
	default: // it may have been carried out or not: it is to be
		p.work.add(u, need{say: true})
	}
	return err
}

// signOn says all of a user, in place of another session's version if there is one.
func (p *Publisher) signOn(ctx context.Context, u *user, over leasemap.Version) error {
	on := u.on
	on.If = over
	there, err := p.cfg.Client.SignOn(ctx, u.name, on)
	if err == nil {
		p.wrote(u, there)
	}
	return err
}

// wrote notes that a server has what was said.
func (p *Publisher) wrote(u *user, there Presence) {
	p.mu.Lock()
	if u.lost {
		p.stats.Republished++
	}
	u.fresh = time.Now()
	p.mu.Unlock()
	u.on.Known, u.written, u.lost = there.Status, there.Version.Generation, false
}
