package im

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasemap"
)

const (
	repairTime  = 30 * time.Second       // is how long one attempt may take
	repairPause = 250 * time.Millisecond // between attempts
	looks       = 8                      // for users to be refreshed, in the time of a refresh
)

// Run follows losses, publishes again what was lost, and refreshes the rest, until the
// context ends. Then it returns nil, and users last for no longer than the TTL. It fails if
// the lookup is closed. It is called once, before or after the first user is published:
// nothing that is lost in between is missed.
func (p *Publisher) Run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return p.follow(running) })
	group.Go(func() error { p.refreshAll(running); return nil })
	group.Go(func() error { p.repairAll(running); return nil })
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// follow hears of losses.
func (p *Publisher) follow(ctx context.Context) error {
	for loss := range p.cfg.Lookup.LossesSince(ctx, p.from) {
		n := need{lost: loss.Generation, ask: loss.Generation == 0}
		told := 0
		for _, u := range p.those(func(u *user) bool { return loss.Range.Contains(u.key) }) {
			p.work.add(u, n)
			told++
		}
		if told > 0 {
			p.cfg.Logger.Info("presence was lost", "loss", loss.String(), "users", told)
		}
	}
	return leasehold.Errorf("publish", leasehold.Closed, string(p.cfg.Lookup.Namespace()), "the lookup was closed: losses would go unheard")
}

// refreshAll lets users last, from time to time.
func (p *Publisher) refreshAll(ctx context.Context) {
	look := time.NewTicker(max(p.cfg.Refresh/looks, time.Millisecond))
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-look.C:
			for _, u := range p.those(func(u *user) bool { return now.Sub(u.fresh) >= p.cfg.Refresh }) {
				p.work.add(u, need{ask: true})
			}
		}
	}
}

func (p *Publisher) those(which func(*user) bool) (found []*user) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.users {
		if which(u) {
			found = append(found, u)
		}
	}
	return found
}

// repairAll does what there is to be done, some at a time.
func (p *Publisher) repairAll(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(p.cfg.Parallel)
	for {
		select {
		case <-ctx.Done():
			_ = group.Wait() // none of them fails
			return
		case <-p.work.ring:
		}
		for u, n, ok := p.work.next(); ok; u, n, ok = p.work.next() {
			group.Go(func() error { p.repair(ctx, u, n); return nil })
		}
	}
}

// repair does what a user needs. If it fails it is tried again, after all others.
func (p *Publisher) repair(ctx context.Context, u *user, n need) {
	attempt, cancel := context.WithTimeout(ctx, repairTime)
	defer cancel()
	err := p.attempt(attempt, u, n)
	if err == nil {
		return
	}
	p.cfg.Logger.Debug("cannot repair; it is tried again", "user", u.name, "err", err)
	select {
	case <-ctx.Done():
	case <-time.After(repairPause):
		p.work.add(u, n)
	}
}

func (p *Publisher) attempt(ctx context.Context, u *user, n need) error {
	if err := u.await(ctx); err != nil {
		return err
	}
	defer u.yield()
	if u.gone {
		return nil
	}
	err := p.fulfil(ctx, u, n)
	if !errors.Is(err, leasehold.Exists) && !errors.Is(err, leasehold.Invalid) {
		return err
	}
	// Another session has the user, or a server does not want it: so it will stay.
	p.cfg.Logger.Warn("a user is not published any more", "user", u.name, "err", err)
	p.forget(u)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Dropped++
	return nil
}

// fulfil says of a user what there is need to. What was written after a loss is not lost.
func (p *Publisher) fulfil(ctx context.Context, u *user, n need) error {
	u.lost = u.lost || u.written != 0 && n.lost >= u.written
	if n.ask && !n.say && !u.lost {
		err := p.cfg.Client.Refresh(ctx, u.name, p.cfg.Session)
		if !errors.Is(err, leasehold.NotFound) {
			return p.refreshed(u, err)
		}
		u.lost = true
	}
	if n.say || u.lost {
		return p.signOn(ctx, u, leasemap.Version{})
	}
	return nil
}

func (p *Publisher) refreshed(u *user, err error) error {
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	u.fresh = time.Now()
	p.stats.Refreshed++
	return nil
}

// A need is what is to be done for a user.
type need struct {
	say  bool                 // it was said, and not acknowledged
	lost leasehold.Generation // of the lease under which it was lost; 0 if it was not
	ask  bool                 // it is to last, and may have been lost
}

// and is what satisfies both needs.
func (n need) and(other need) need {
	return need{n.say || other.say, max(n.lost, other.lost), n.ask || other.ask}
}

// repairs are what is to be done: each user is there once at the most.
type repairs struct {
	ring  chan struct{} // something was added
	mu    sync.Mutex
	order []*user
	needs map[*user]need
}

func newRepairs() *repairs {
	return &repairs{ring: make(chan struct{}, 1), needs: make(map[*user]need)}
}

// add adds a need to those of a user.
func (r *repairs) add(u *user, n need) {
	r.mu.Lock()
	has, waiting := r.needs[u]
	if !waiting {
		r.order = append(r.order, u)
	}
	r.needs[u] = has.and(n)
	r.mu.Unlock()
	select {
	case r.ring <- struct{}{}:
	default: // it will be noticed
	}
}

func (r *repairs) next() (*user, need, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.order) == 0 {
		return nil, need{}, false
	}
	u := r.order[0]
	r.order = r.order[1:]
	n := r.needs[u]
	delete(r.needs, u)
	return u, n, true
}
