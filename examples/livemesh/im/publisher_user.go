package im

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A user is one that is published.
type user struct {
	name string
	key  leasehold.Key
	// turn is had by whoever speaks for the user. It is no mutex, because it is held over
	// requests.
	turn chan struct{}

	// These are for whoever has the turn.
	on   SignOn // Known is the status of the last that was acknowledged
	lost bool   // it was there, and is not
	gone bool   // it is not published any more
	// written is the generation of the lease under which it was last written; 0 if it never
	// was.
	written leasehold.Generation

	fresh time.Time // when it was known to be there; for whoever has the publisher's lock
}

// take returns a user whose turn the caller has.
func (p *Publisher) take(ctx context.Context, name string, create bool) (*user, error) {
	for {
		u, err := p.find(name, create)
		if err != nil {
			return nil, err
		}
		if err := u.await(ctx); err != nil {
			return nil, err
		}
		if !u.gone {
			return u, nil
		}
		u.yield() // and there is none by now, or another
	}
}

func (p *Publisher) find(name string, create bool) (*user, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.users[name]
	switch {
	case u != nil:
	case create:
		u = &user{name: name, key: leasehold.KeyOf(name), turn: make(chan struct{}, 1), fresh: time.Now()}
		p.users[name] = u
	default:
		return nil, leasehold.Errorf("find user", leasehold.NotFound, name, "the user is not published here")
	}
	return u, nil
}

// forget ends the publication of a user whose turn the caller has.
func (p *Publisher) forget(u *user) {
	u.gone = true
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.users, u.name)
}

// set sets what is to be said of a user, and returns what was.
func (u *user) set(session string, to Presence) (was SignOn) {
	was = u.on
	u.on = SignOn{Session: session, Address: to.Address, Status: to.Status, IP: to.IP, Known: was.Known}
	return was
}

// ErrUnsaid is what a [Publisher] fails with if the context ended while it was still saying
// something else of the same user: what was to be said never is.
var ErrUnsaid = errors.New("nothing was said")

// await waits for the turn. It comes at once if nobody has it, also if the context has ended:
// a user that was only just made is always taken by somebody, who says or forgets it.
func (u *user) await(ctx context.Context) error {
	select {
	case u.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case u.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return leasehold.Errorf("wait for turn", leasehold.Unavailable, u.name, "%w: %w", ErrUnsaid, context.Cause(ctx))
	}
}

func (u *user) yield() { <-u.turn }
