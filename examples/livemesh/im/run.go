package im

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold"
)

const (
	maxSending = 16                     // concurrent requests of Run
	sendTime   = 30 * time.Second       // of one attempt
	sendPause  = 250 * time.Millisecond // after a failed attempt
)

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
			p.handle(loss)
		}
		return nil // unreachable: the iterator ends with an error
	})
	group.Go(func() error { p.sendDue(running); return nil })
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// handle makes the users of a lost lease due. If its generation is unknown, because the loss was
// long ago, a user that was not lost is only refreshed.
func (p *Publisher) handle(loss leasehold.Loss) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.users {
		if loss.Range.Contains(u.key) && (loss.Generation == 0 || u.written.Generation <= loss.Generation) {
			u.due = true
		}
	}
	p.signal()
}

func (p *Publisher) signal() {
	select {
	case p.wake <- struct{}{}:
	default: // a signal is pending already
	}
}

// sendDue sends users that are due or to be refreshed, until the context ends.
func (p *Publisher) sendDue(ctx context.Context) {
	look := time.NewTicker(max(p.cfg.Refresh/8, time.Millisecond))
	defer look.Stop()
	var group errgroup.Group
	group.SetLimit(maxSending)
	for {
		select {
		case <-ctx.Done():
			_ = group.Wait() // never fails
			return
		case <-p.wake:
		case <-look.C:
		}
		for _, u := range p.takeDue() {
			group.Go(func() error { p.resend(ctx, u); return nil })
		}
	}
}

// takeDue returns the users that are due and not being sent.
func (p *Publisher) takeDue() (users []*user) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.users {
		if (u.due || time.Since(u.fresh) >= p.cfg.Refresh) && !u.sending {
			u.sending = true
			users = append(users, u)
		}
	}
	return users
}

// resend sends a user. A failed one is due again after a pause.
func (p *Publisher) resend(ctx context.Context, u *user) {
	attempt, cancel := context.WithTimeout(ctx, sendTime)
	err := p.send(attempt, u)
	cancel()
	if err != nil {
		select {
		case <-ctx.Done():
		case <-time.After(sendPause):
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	u.sending = false
	if u.due {
		p.signal()
	}
}
