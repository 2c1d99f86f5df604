package im

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasemap"
)

const (
	maxRepairs  = 16                     // concurrent repairs and refreshes
	repairTime  = 30 * time.Second       // of one attempt
	repairPause = 250 * time.Millisecond // after a failed attempt
)

// A need is pending work for a user.
type need struct {
	write   bool                 // an unacknowledged write
	lost    leasehold.Generation // of the lost lease; 0 if not lost
	refresh bool                 // it may be lost, or is about to expire
}

func (n need) and(other need) need {
	return need{n.write || other.write, max(n.lost, other.lost), n.refresh || other.refresh}
}

// Run follows losses, publishes lost users again, and refreshes all users, until the context
// ends. Then it returns nil, and users expire after the TTL. It fails if the lookup is closed.
// Call it once, before or after the first Publish: no loss in between is missed.
func (p *Publisher) Run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error {
		for loss, err := range p.cfg.Lookup.LossesSince(running, p.from) {
			if err != nil {
				return err
			}
			p.require(need{lost: loss.Generation, refresh: loss.Generation == 0}, func(u *user) bool { return loss.Range.Contains(u.key) })
		}
		return nil // unreachable: the iterator ends with an error
	})
	group.Go(func() error { p.repairAll(running); return nil })
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

func (p *Publisher) require(n need, of func(*user) bool) {
	p.mu.Lock()
	for _, u := range p.users {
		if of(u) {
			u.need = u.need.and(n)
		}
	}
	p.mu.Unlock()
	p.signal()
}

func (p *Publisher) signal() {
	select {
	case p.wake <- struct{}{}:
	default: // a signal is pending already
	}
}

func (p *Publisher) repairAll(ctx context.Context) {
	look := time.NewTicker(max(p.cfg.Refresh/8, time.Millisecond))
	defer look.Stop()
	var group errgroup.Group
	group.SetLimit(maxRepairs)
	for {
		select {
		case <-ctx.Done():
			_ = group.Wait() // never fails
			return
		case <-p.wake:
		case <-look.C:
		}
		for _, u := range p.due() {
			group.Go(func() error { p.repair(ctx, u); return nil })
		}
	}
}

// due returns the users with pending work that are not being repaired.
func (p *Publisher) due() (users []*user) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.users {
		if time.Since(u.fresh) >= p.cfg.Refresh {
			u.need.refresh = true
		}
		if u.need != (need{}) && !u.repairing {
			u.repairing = true
			users = append(users, u)
		}
	}
	return users
}

// repair does the pending work of a user. After a failure it is queued again behind the others.
func (p *Publisher) repair(ctx context.Context, u *user) {
	p.mu.Lock()
	n := u.need
	u.need = need{}
	p.mu.Unlock()
	attempt, cancel := context.WithTimeout(ctx, repairTime)
	err := p.attempt(attempt, u, n)
	cancel()
	if err != nil {
		select {
		case <-ctx.Done():
		case <-time.After(repairPause):
		}
	}
	p.mu.Lock()
	u.repairing = false
	if err != nil {
		u.need = u.need.and(n)
	}
	more := u.need != (need{})
	p.mu.Unlock()
	if more {
		p.signal()
	}
}

func (p *Publisher) attempt(ctx context.Context, u *user, n need) error {
	if err := u.await(ctx); err != nil {
		return err
	}
	defer u.turn.Release(1)
	if u.gone {
		return nil
	}
	err := p.fulfil(ctx, u, n)
	if !errors.Is(err, leasehold.ErrExists) && !errors.Is(err, leasehold.ErrInvalid) {
		return err
	}
	// Another session publishes the user, or a server rejects it permanently.
	p.drop(u)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Dropped++
	return nil
}

// fulfil sends the requests for a need. A user that was written after a loss is not lost.
func (p *Publisher) fulfil(ctx context.Context, u *user, n need) error {
	u.lost = u.lost || u.written != 0 && n.lost >= u.written
	if n.refresh && !n.write && !u.lost {
		err := p.cfg.Client.Refresh(ctx, u.name, p.session)
		if err == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			u.fresh = time.Now()
			p.stats.Refreshed++
		}
		if !errors.Is(err, leasehold.ErrNotFound) {
			return err
		}
		u.lost = true
	}
	if n.write || u.lost {
		return p.signOn(ctx, u, leasemap.Version{})
	}
	return nil
}
