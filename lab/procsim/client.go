package procsim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// A client writes increasing values to the maps of a space, and reads them. It finds the server of a name in the table of
// the first lookup.
//
// No acknowledged value may be missing unless its loss was reported, and no loss may be reported of a value that is still
// there.
type client struct {
	space  *space
	random *rand.Rand
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	values []register
}

// A register is the state of a name.
type register struct {
	acked, tried int
	ackedAt      time.Time
	missing      time.Time // a read found an older value then; zero: none
	lostAt       time.Time // of the last reported loss
	lost         int       // the acknowledged value at that time
}

func newClient(s *space) *client {
	c := &client{space: s, random: rand.New(rand.NewPCG(s.world.seed, 7)), values: make([]register, len(names))}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *client) stop() { c.cancel() }

func (c *client) run() {
	for c.ctx.Err() == nil {
		select {
		case <-time.After(between(c.random, 100*time.Millisecond, 1500*time.Millisecond)):
		case <-c.ctx.Done():
			return
		}
		i := c.random.IntN(len(names))
		write := c.random.IntN(2) == 0
		if m := c.find(i); m != nil {
			c.call(m, i, write)
		}
		c.judgeMissing()
	}
}

// find returns the map of the server that has a name.
func (c *client) find(i int) *leasemap.Map[int] {
	first := c.space.callers
	if len(first) == 0 {
		return nil
	}
	first[0].mu.Lock()
	l := first[0].lookup
	first[0].mu.Unlock()
	if l == nil {
		return nil
	}
	addr, ok := l.Find(c.space.keys[i])
	c.space.mu.Lock()
	defer c.space.mu.Unlock()
	for _, v := range c.space.servers {
		if ok && v.addr() == addr && v.up() != nil {
			return v.values
		}
	}
	return nil
}

func (c *client) call(m *leasemap.Map[int], i int, write bool) {
	ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
	defer cancel()
	if write {
		c.mu.Lock()
		c.values[i].tried++
		value := c.values[i].tried
		c.mu.Unlock()
		if _, err := m.Set(ctx, names[i], value); err == nil {
			c.mu.Lock()
			c.values[i].acked, c.values[i].ackedAt = value, time.Now()
			c.mu.Unlock()
		}
		return
	}
	begun := time.Now()
	value, _, err := m.Get(names[i])
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.values[i]
	switch {
	case value > r.tried:
		c.space.world.violated("I7", "a value was invented", "%s: %s is %d, and %d is the last that was written", c.space.name, names[i], value, r.tried)
	case value < r.acked && r.missing.IsZero():
		r.missing = begun
	case !c.space.world.restored && value > 0 && r.lost > 0 && value <= r.lost && begun.After(r.lostAt):
		c.space.world.violated("I4", "a loss was reported of a value that is still there", "%s: the loss of %s was reported at %v, and it still is %d",
			c.space.name, names[i], r.lostAt.Sub(c.space.world.begun), value)
	}
}

// lost records that the first lookup has reported a loss.
func (c *client) lost(l *leasehold.Loss) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, key := range c.space.keys {
		if l.Range.Contains(key) {
			r := &c.values[i]
			now := register{tried: r.tried, lostAt: time.Now()}
			if time.Since(r.ackedAt) > c.space.stale+10*time.Second { // a newer value may have been written after the loss
				now.lost = r.acked
			}
			*r = now
		}
	}
}

// judgeMissing finds values whose loss was not reported in time, while the lookup has contact.
func (c *client) judgeMissing() {
	s := c.space
	bound := s.stale*11/10 + 10*time.Second
	contact := later(s.callers[0].due(), s.world.group.due()).Add(bound)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.values {
		r := &c.values[i]
		if now := time.Now(); !r.missing.IsZero() && now.After(later(contact, r.missing.Add(bound))) {
			s.world.violated("I7", "an acknowledged value is missing", "%s: the value %d of %s is missing since %v, and no loss was reported", s.name, r.acked, names[i], r.missing.Sub(s.world.begun))
			*r = register{tried: r.tried}
		}
	}
}
