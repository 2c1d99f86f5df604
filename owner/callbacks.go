package owner

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// hangs is after how long a callback that has not returned is named in the log.
const hangs = 10 * time.Second

// callbacks tell the application what it has and no longer has, on a goroutine
// of their own.
//
// What waits to be told is not a queue of events. It is the difference between
// what the application was told last and what is held now, and besides that the
// leases that came and went meanwhile: the application was never told of those,
// but may have found them with Check. So nothing is missing from it, and it is
// bounded however slow the application is: see passing.
type callbacks struct {
	onGrant   func([]leasehold.Lease)
	onRevoke  func([]leasehold.Lease, leasehold.Cause)
	onSuspend func([]leasehold.Lease)
	onResume  func([]leasehold.Lease)
	logger    *slog.Logger
	changed   chan struct{} // has room for one
	ended     chan struct{}

	mu   sync.Mutex
	held []leasehold.Lease // immutable
	told []leasehold.Lease // immutable
	// suspended: the deadline of what is held has passed. toldSuspended is the part of told
	// that the application was told to be suspended; immutable.
	suspended     bool
	toldSuspended []leasehold.Lease

	causes map[leasehold.Generation]leasehold.Cause // of leases in told
	passed passing
	last   bool   // nothing will change any more
	now    string // the callback that is being called
	// late has an entry for each lease that is being installed: what has ended of
	// it, and is told when that is over.
	late map[leasehold.Generation]passing
}

func newCallbacks(cfg *Config, logger *slog.Logger) *callbacks {
	c := &callbacks{
		onGrant: cfg.OnGrant, onRevoke: cfg.OnRevoke, onSuspend: cfg.OnSuspend, onResume: cfg.OnResume, logger: logger,
		changed: make(chan struct{}, 1), ended: make(chan struct{}),
		causes: make(map[leasehold.Generation]leasehold.Cause), late: make(map[leasehold.Generation]passing),
	}
	for _, optional := range []*func([]leasehold.Lease){&c.onGrant, &c.onSuspend, &c.onResume} {
		if *optional == nil {
			*optional = func([]leasehold.Lease) {}
		}
	}
	if c.onRevoke == nil {
		c.onRevoke = func([]leasehold.Lease, leasehold.Cause) {}
	}
	return c
}

func (c *callbacks) start() { go c.run() }

// change says what is held now, what will be in a moment, what has ended on the way to
// it, and whether what is held is suspended, as one: who sees that a lease is gone also
// sees why. It does not wait.
//
// If parts of a lease end for different reasons before the application has been
// told, the last one is told.
func (c *callbacks) change(held []leasehold.Lease, coming []leasehold.Range, ended []revocation, suspended bool) {
	c.mu.Lock()
	c.held, c.suspended = held, suspended
	for _, e := range ended {
		unknown := protocol.Missing(e.leases, c.told)
		for _, l := range protocol.Missing(e.leases, unknown) {
			c.causes[l.Generation] = e.cause
		}
		c.pass(unknown, e.cause)
	}
	c.passed.bound(held, coming)
	c.mu.Unlock()
	c.nudge()
}

// pass notes the end of leases that the application was not told the beginning of.
func (c *callbacks) pass(leases []leasehold.Lease, cause leasehold.Cause) {
	for _, l := range leases {
		if late, installing := c.late[l.Generation]; installing {
			c.late[l.Generation] = append(late, passed{l, cause})
		} else {
			c.passed = append(c.passed, passed{l, cause})
		}
	}
}

// installing holds back the end of a lease whose state the application puts in its
// place from now on: who is told in the midst of that clears away too little.
func (c *callbacks) installing(g leasehold.Generation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late[g] = nil
}

// installed tells of it, if it has come. The application has put the state in its
// place, or never will.
func (c *callbacks) installed(g leasehold.Generation) {
	c.mu.Lock()
	c.passed = append(c.passed, c.late[g]...)
	delete(c.late, g)
	c.mu.Unlock()
	c.nudge()
}

func (c *callbacks) nudge() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// stop lets the application hear the rest, and waits for it as long as the
// context allows.
func (c *callbacks) stop(ctx context.Context) error {
	c.mu.Lock()
	c.last = true
	c.mu.Unlock()
	c.nudge()
	select {
	case <-c.ended:
		return nil
	default:
	}
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return leasehold.Errorf(opClose, leasehold.ErrUnavailable, c.now, "the callback has not returned: %w", ctx.Err())
}

func (c *callbacks) run() {
	defer close(c.ended)
	for range c.changed {
		d := c.difference()
		for _, r := range d.revoked {
			c.call("OnRevoke", func() { c.onRevoke(r.leases, r.cause) })
		}
		for _, t := range []struct {
			name   string
			tell   func([]leasehold.Lease)
			leases []leasehold.Lease
		}{{"OnResume", c.onResume, d.resumed}, {"OnGrant", c.onGrant, d.granted}, {"OnSuspend", c.onSuspend, d.suspended}} {
			if len(t.leases) > 0 {
				c.call(t.name, func() { t.tell(t.leases) })
			}
		}
		if d.last {
			return
		}
	}
}

// A difference is what the application has yet to be told, in this order: a lease that is
// suspended was granted before, and one that has ended is not resumed.
type difference struct {
	revoked   []revocation
	resumed   []leasehold.Lease
	granted   []leasehold.Lease
	suspended []leasehold.Lease
	last      bool
}

// A revocation is leases that have ended for one reason.
type revocation struct {
	leases []leasehold.Lease
	cause  leasehold.Cause
}

// difference returns what is to be told, and takes it for told.
func (c *callbacks) difference() difference {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := difference{granted: protocol.Missing(c.held, c.told), last: c.last}
	for _, l := range protocol.Missing(c.told, c.held) {
		d.revoke(l, c.causes[l.Generation])
	}
	for _, p := range c.passed {
		d.revoke(p.Lease, p.cause)
	}
	var suspended []leasehold.Lease
	if c.suspended {
		suspended = c.held
	}
	kept := protocol.Missing(c.toldSuspended, protocol.Missing(c.toldSuspended, c.held))
	d.resumed, d.suspended = protocol.Missing(kept, suspended), protocol.Missing(suspended, c.toldSuspended)
	c.told, c.toldSuspended, c.passed = c.held, suspended, nil
	clear(c.causes)
	return d
}

// revoke adds a lease to those that end for the same reason.
func (d *difference) revoke(l leasehold.Lease, cause leasehold.Cause) {
	for i := range d.revoked {
		if d.revoked[i].cause == cause {
			d.revoked[i].leases = append(d.revoked[i].leases, l)
			return
		}
	}
	d.revoked = append(d.revoked, revocation{[]leasehold.Lease{l}, cause})
}

// call calls a callback, and names it if it hangs. Nothing of ours waits for
// it, so that it can do no harm but to the application.
func (c *callbacks) call(name string, callback func()) {
	c.mu.Lock()
	c.now = name
	c.mu.Unlock()
	begun := time.Now()
	watch := time.AfterFunc(hangs, func() {
		c.logger.Warn("a callback of the application hangs: it learns of no further leases until it returns", "callback", name, "for", hangs)
	})
	callback()
	if !watch.Stop() {
		c.logger.Warn("a callback of the application has returned at last", "callback", name, "after", time.Since(begun))
	}
}
