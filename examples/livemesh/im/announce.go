package im

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// What bounds a crier.
const (
	criers   = 4               // announcements at a time
	backlog  = 256             // that wait for each of them
	cryingIn = 5 * time.Second // is how long one may take
)

// An announcement is what is to be told.
type announcement struct{ user, text string }

// A crier tells others that the status of a user has changed, behind the back of requests.
type crier struct {
	cfg     Config
	ctx     context.Context
	cancel  context.CancelFunc
	waiting []chan announcement // all of a user are in the same one, so that they stay in order
	running sync.WaitGroup
}

func newCrier(cfg Config) *crier {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crier{cfg: cfg, ctx: ctx, cancel: cancel}
	if cfg.Announce == nil {
		return c
	}
	for range criers {
		next := make(chan announcement, backlog)
		c.waiting = append(c.waiting, next)
		c.running.Go(func() { c.tell(next) })
	}
	return c
}

// cry has it told that a user has a status. It does not wait.
func (c *crier) cry(user, status string) {
	if len(c.waiting) == 0 {
		return
	}
	select {
	case c.waiting[uint64(leasehold.KeyOf(user))%criers] <- announcement{user, "is now " + status}:
	default:
		c.cfg.Logger.Warn("not announced: too many wait already", "user", user, "status", status)
	}
}

func (c *crier) tell(from <-chan announcement) {
	for {
		select {
		case <-c.ctx.Done():
			return
		case a := <-from:
			ctx, cancel := context.WithTimeout(c.ctx, cryingIn)
			if err := c.cfg.Announce(ctx, a.user, a.text); err != nil {
				c.cfg.Logger.Warn("not announced", "user", a.user, "text", a.text, "err", err)
			}
			cancel()
		}
	}
}

// stop ends it. What is waiting is dropped.
func (c *crier) stop() {
	c.cancel()
	c.running.Wait()
}
