package memcatalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/memcatalog"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/catalogwire"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/logthrottle"
)

// maxCatalog bounds the catalog, which is sent as a whole.
const maxCatalog = 1 << 20

// replica runs the machine of this manager's copy of the catalog, and its calls.
type replica struct {
	g       *Group
	rearm   chan struct{}  // signals that wake changed
	running sync.WaitGroup // calls

	mu      sync.Mutex
	machine *machine.Machine
	term    leasehold.Term // 0 unless this manager leads
	wake    mono.Instant
	waiting []chan *storage.Catalog // readers of the catalog; they receive nil when leadership ends
	writer  chan machine.Written    // receives the result of the write in flight; nil without one
	answer  *machine.Response       // of the last step
	peers   map[storage.ManagerID]*peer
	closed  bool

	waitUntil mono.Instant // no grants until then; 0 if a majority had the catalog

	// A leader with other settings, and the time of its last call.
	mismatched string
	mismatchAt mono.Instant
	warned     *logthrottle.Throttle[string]
}

func newReplica(g *Group) (*replica, error) {
	m, err := machine.New(g.cfg.replica())
	if err != nil {
		return nil, err
	}
	c := &replica{g: g, machine: m, wake: mono.Never, rearm: make(chan struct{}, 1), peers: make(map[storage.ManagerID]*peer), warned: logthrottle.New[string](mismatchLogInterval)}
	for _, p := range g.cfg.Peers {
		c.peers[p.Manager] = &peer{id: p.Manager}
	}
	return c, nil
}

// runTimer steps the machine at its wake times.
func (c *replica) runTimer(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.rearm:
		case <-timer.C:
			c.mu.Lock()
			c.step(nil)
			c.mu.Unlock()
		}
		c.mu.Lock()
		wake := c.wake
		c.mu.Unlock()
		timer.Reset(max(0, min(time.Hour, wake.Sub(c.g.cfg.Clock.Now()))))
	}
}

// step steps the machine and executes its actions; without an event it only advances the time. The
// lock is held.
func (c *replica) step(e machine.Event) {
	now := c.g.cfg.Clock.Now()
	var actions []machine.Action
	var wake mono.Instant
	if e == nil {
		actions, wake = c.machine.Advance(now)
	} else {
		actions, wake = c.machine.Step(now, e)
	}
	for _, a := range actions {
		switch a := a.(type) {
		case machine.Ask:
			c.send(c.peers[a.To], a.Request)
		case machine.Answer:
			c.answer = a.Response
		case machine.Loaded:
			c.loaded(a.Catalog)
		case machine.Written:
			if c.writer != nil {
				c.writer <- a
				c.writer = nil
			}
		case machine.Outranked:
			c.running.Go(func() { c.g.cfg.Outranked(a.By) })
		case machine.Forgotten:
			c.forgotten(now, a.Wait)
		}
	}
	if wake != c.wake {
		c.wake = wake
		select {
		case c.rearm <- struct{}{}:
		default:
		}
	}
}

// forgotten records how long leases from before may still be valid. The wait may be over before it
// was announced.
func (c *replica) forgotten(now mono.Instant, wait time.Duration) {
	announced := c.waitUntil != 0
	c.waitUntil = now.Add(wait)
	switch {
	case announced:
	case wait > 0:
		c.g.log.Warn("the namespaces may be lost: fewer than a majority of the managers have a catalog, so the group is new, or too many were restarted at a time. "+
			"No leases are granted until all leases from before have expired", "wait", wait)
	default:
		c.g.log.Warn("the namespaces may be lost: fewer than a majority of the managers have a catalog, so the group is new, or too many were restarted at a time")
	}
}

func (c *replica) loaded(catalog *storage.Catalog) {
	for _, w := range c.waiting {
		w <- catalog
	}
	c.waiting = nil
}

// begin starts leadership in a term.
func (c *replica) begin(term leasehold.Term) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.term, c.waitUntil = term, 0
	for _, p := range c.peers {
		p.answered, p.called = false, false
	}
	c.step(machine.Lead{Term: term})
}

func (c *replica) stepDown() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.term = 0
	for _, p := range c.peers {
		p.next = nil
	}
	c.step(machine.StepDown{})
	c.loaded(nil)
}

// load waits for the committed catalog.
func (c *replica) load(ctx context.Context) (*storage.Catalog, error) {
	const op = "read namespaces"
	mine := make(chan *storage.Catalog, 1)
	c.mu.Lock()
	if c.term == 0 {
		c.mu.Unlock()
		return nil, c.g.notLeader(op)
	}
	c.waiting = append(c.waiting, mine)
	c.step(machine.Lead{Term: c.term})
	c.mu.Unlock()
	select {
	case catalog := <-mine:
		if catalog == nil {
			return nil, c.g.notLeader(op)
		}
		return catalog, nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(w chan *storage.Catalog) bool { return w == mine })
	return nil, leasehold.Errorf(op, leasehold.ErrUnavailable, "", "fewer than a majority of the managers have replied: %w", context.Cause(ctx))
}

// save replaces the catalog if its version is still next's, and waits for a majority.
func (c *replica) save(ctx context.Context, next *storage.Catalog) (storage.Outcome, error) {
	const op = "write namespaces"
	if n := proto.Size(catalogwire.FromCatalog(next)); n > maxCatalog {
		return storage.Conflict, leasehold.Errorf(op, leasehold.ErrLimit, "",
			"%d namespaces take %d bytes, and the limit is %d: use fewer static slots", len(next.Namespaces), n, maxCatalog)
	}
	mine, ok := c.write(next)
	if !ok {
		return storage.Conflict, nil
	}
	select {
	case w := <-mine:
		failpoint.Here("memcatalog/catalog-confirmed")
		if w.Outcome == storage.Done && !c.g.leads(next.Term) {
			w.Outcome = storage.Unknown // a new leader may exist, and may not have read it
		}
		return w.Outcome, c.unknown(w.Outcome, op)
	case <-ctx.Done():
		return storage.Unknown, leasehold.Errorf(op, leasehold.ErrUnavailable, "", "fewer than a majority of the managers have acknowledged it: %w", context.Cause(ctx))
	}
}

// unknown returns the error of an unknown outcome.
func (c *replica) unknown(o storage.Outcome, op string) error {
	if o == storage.Unknown {
		return leasehold.Errorf(op, leasehold.ErrUnavailable, string(c.g.cfg.Self), "leadership ended during the write: it may or may not have taken effect")
	}
	return nil
}

// write starts a write of the catalog. It reports false if this manager does not lead in its
// term, or another write is in flight.
func (c *replica) write(next *storage.Catalog) (<-chan machine.Written, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term == 0 || c.term != next.Term || c.writer != nil {
		return nil, false
	}
	mine := make(chan machine.Written, 1)
	c.writer = mine
	c.step(machine.Write{Prev: next.Version, Catalog: next})
	return mine, true
}

// informed reports whether this manager has a catalog.
func (c *replica) informed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.Catalog() != nil
}

// lacksMajority reports whether the catalog is unknown, and fewer than a majority of the managers
// have replied in this leadership.
func (c *replica) lacksMajority() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term != 0 && c.machine.Missing() == nil {
		return false
	}
	answered := 1
	for _, p := range c.peers {
		if p.answered {
			answered++
		}
	}
	return 2*answered <= len(c.peers)
}

func (c *replica) missing() (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.machine.Missing() {
		text := string(id)
		if p := c.peers[id]; p.called && p.err != nil && leasehold.KindOf(p.err) != leasehold.ErrUnavailable {
			text += fmt.Sprintf(" (%v)", p.err)
		}
		out = append(out, text)
	}
	return out
}

// waits returns the time until leases may be granted.
func (c *replica) waits() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, c.waitUntil.Sub(c.g.cfg.Clock.Now()))
}

// handleRequest returns the reply to a leader's request, nil if the sender is not in the group.
func (c *replica) handleRequest(from storage.ManagerID, r *machine.Request) *machine.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = nil
	c.step(machine.Asked{From: from, Request: r})
	return c.answer
}

// close waits for the calls in flight and closes the connections.
func (c *replica) close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
	var failed error
	for _, p := range c.peers {
		if p.conn != nil {
			failed = errors.Join(failed, p.conn.Close())
		}
	}
	return failed
}
