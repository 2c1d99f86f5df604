package owner

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// hangTimeout is the time after which a running callback is logged.
const hangTimeout = 10 * time.Second

// callbacks notify the application of grants, ends, suspensions and resumptions, on a
// separate goroutine.
//
// The backlog is not a queue of events. It is the difference between
// the leases of the last notification and the leases that are held now, and in addition the
// leases that were granted and ended meanwhile: the application was not notified of those,
// but Check may have returned them. So it is complete, and it is
// bounded for a slow application: see unreported.
type callbacks struct {
	onGrant   func([]leasehold.Lease)
	onRevoke  func([]leasehold.Lease, leasehold.Cause)
	onSuspend func([]leasehold.Lease)
	onResume  func([]leasehold.Lease)
	logger    *slog.Logger
	changed   chan struct{} // buffers one signal
	ended     chan struct{}

	mu       sync.Mutex
	held     []leasehold.Lease // immutable
	notified []leasehold.Lease // leases of the last notification; immutable
	// suspended is the part of held on which checks fail, and notifiedSuspended the part of notified
	// whose suspension was reported; immutable.
	suspended, notifiedSuspended []leasehold.Lease

	causes     map[leasehold.Generation]leasehold.Cause // of the end of leases in notified
	unreported unreported
	last       bool   // no further change
	current    string // name of the running callback
	// deferred has an entry for each lease that is being installed: its parts that have
	// ended. They are reported after the installation.
	deferred map[leasehold.Generation]unreported
}

func newCallbacks(cfg *Config, logger *slog.Logger) *callbacks {
	c := &callbacks{
		onGrant: cfg.OnGrant, onRevoke: cfg.OnRevoke, onSuspend: cfg.OnSuspend, onResume: cfg.OnResume, logger: logger,
		changed: make(chan struct{}, 1), ended: make(chan struct{}),
		causes: make(map[leasehold.Generation]leasehold.Cause), deferred: make(map[leasehold.Generation]unreported),
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

// change records one step: the leases that are held, the part of them that is suspended, the
// ranges that will be granted with their state, and the leases that have ended. It does not
// wait.
//
// If parts of a lease end for different causes before the application is
// notified, the last cause is reported, and CauseMoved, after which nothing is lost, only if all parts have moved.
func (c *callbacks) change(held, suspended []leasehold.Lease, coming []leasehold.Range, ended []revocation) {
	c.mu.Lock()
	c.held, c.suspended = held, suspended
	for _, e := range ended {
		unknown := protocol.Missing(e.leases, c.notified)
		for _, l := range protocol.Missing(e.leases, unknown) {
			if _, other := c.causes[l.Generation]; !other || e.cause != leasehold.CauseMoved {
				c.causes[l.Generation] = e.cause
			}
		}
		c.addUnreported(unknown, e.cause)
	}
	c.unreported.bound(held, coming)
	c.mu.Unlock()
	c.signal()
}

// addUnreported records the end of leases whose grant was not reported.
func (c *callbacks) addUnreported(leases []leasehold.Lease, cause leasehold.Cause) {
	for _, l := range leases {
		if d, installing := c.deferred[l.Generation]; installing {
			c.deferred[l.Generation] = append(d, endedLease{l, cause})
		} else {
			c.unreported = append(c.unreported, endedLease{l, cause})
		}
	}
}

// installing defers the report that a lease has ended while the application installs its
// state: OnRevoke during the installation would remove only a part of the state.
func (c *callbacks) installing(g leasehold.Generation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deferred[g] = nil
}

// installed reports the deferred ends of a lease after install has returned or was skipped.
func (c *callbacks) installed(g leasehold.Generation) {
	c.mu.Lock()
	c.unreported = append(c.unreported, c.deferred[g]...)
	delete(c.deferred, g)
	c.mu.Unlock()
	c.signal()
}

func (c *callbacks) signal() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// stop makes the last notifications, and waits for the callbacks as long as the
// context allows.
func (c *callbacks) stop(ctx context.Context) error {
	c.mu.Lock()
	c.last = true
	c.mu.Unlock()
	c.signal()
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
	return leasehold.Errorf(opClose, leasehold.ErrUnavailable, c.current, "the callback has not returned: %w", ctx.Err())
}

func (c *callbacks) run() {
	defer close(c.ended)
	for range c.changed {
		d := c.difference()
		for _, r := range d.revoked {
			c.call("OnRevoke", func() { c.onRevoke(r.leases, r.cause) })
		}
		for _, n := range []struct {
			name     string
			callback func([]leasehold.Lease)
			leases   []leasehold.Lease
		}{{"OnResume", c.onResume, d.resumed}, {"OnGrant", c.onGrant, d.granted}, {"OnSuspend", c.onSuspend, d.suspended}} {
			if len(n.leases) > 0 {
				c.call(n.name, func() { n.callback(n.leases) })
			}
		}
		if d.last {
			return
		}
	}
}

// A difference is the set of pending notifications, in the order of the calls: a suspended
// lease was granted before, and an ended lease is not resumed.
type difference struct {
	revoked   []revocation
	resumed   []leasehold.Lease
	granted   []leasehold.Lease
	suspended []leasehold.Lease
	last      bool
}

// A revocation is a set of leases that have ended for one cause.
type revocation struct {
	leases []leasehold.Lease
	cause  leasehold.Cause
}

// difference returns the pending notifications, and marks them as notified.
func (c *callbacks) difference() difference {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := difference{granted: protocol.Missing(c.held, c.notified), last: c.last}
	for _, l := range protocol.Missing(c.notified, c.held) {
		d.revoke(l, c.causes[l.Generation])
	}
	for _, e := range c.unreported {
		d.revoke(e.Lease, e.cause)
	}
	kept := protocol.Missing(c.notifiedSuspended, protocol.Missing(c.notifiedSuspended, c.held))
	d.resumed, d.suspended = protocol.Missing(kept, c.suspended), protocol.Missing(c.suspended, c.notifiedSuspended)
	c.notified, c.notifiedSuspended, c.unreported = c.held, c.suspended, nil
	clear(c.causes)
	return d
}

// revoke adds an ended lease to the revocation with the same cause.
func (d *difference) revoke(l leasehold.Lease, cause leasehold.Cause) {
	for i := range d.revoked {
		if d.revoked[i].cause == cause {
			d.revoked[i].leases = append(d.revoked[i].leases, l)
			return
		}
	}
	d.revoked = append(d.revoked, revocation{[]leasehold.Lease{l}, cause})
}

// call calls a callback, and logs it if it hangs. No other part of the owner waits for
// callbacks.
func (c *callbacks) call(name string, callback func()) {
	c.mu.Lock()
	c.current = name
	c.mu.Unlock()
	begun := time.Now()
	watch := time.AfterFunc(hangTimeout, func() {
		c.logger.Warn("callback hangs: no further callbacks until it returns", "callback", name, "for", hangTimeout)
	})
	callback()
	if !watch.Stop() {
		c.logger.Warn("hanging callback has returned", "callback", name, "after", time.Since(begun))
	}
}
