package procsim

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/lab/chaos/check"
	"github.com/leasehold-dev/leasehold/lab/chaos/history"
	"github.com/leasehold-dev/leasehold/lookup"
)

// A caller is a computer with a lookup.
type caller struct {
	*host
	excuses // of lost contact
	space   *space
	cancel  context.CancelFunc
	starts  int

	mu       sync.Mutex
	lookup   *lookup.Lookup // nil: not open
	record   *check.Caller
	views    []tableView
	reported []leasehold.Loss
}

// A tableView is what a lookup's table has for the keys.
type tableView struct {
	lsn  leasehold.LSN
	held []leasehold.Generation // by key; 0: vacant
}

func (s *space) newCaller() *caller {
	c := &caller{host: s.world.newHost(fmt.Sprintf("%s-caller%d", s.name, len(s.callers)+1)), space: s}
	s.callers = append(s.callers, c)
	return c
}

func (w *world) startCaller(c *caller) {
	s := c.space
	c.starts++
	c.node = w.net.Host(c.name)
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	record := s.book.Caller(fmt.Sprintf("%s.%d", c.name, c.starts))
	c.mu.Lock()
	c.lookup, c.record, c.views = nil, record, nil
	c.mu.Unlock()
	cfg := lookup.Config{
		Namespace: s.name, Managers: w.addrs(), Poll: s.poll, Stale: s.stale, ConservativeRecovery: s.conservative,
		Credentials: insecure.NewCredentials(), DialOptions: dialer(c.node), Clock: clock.NewOn(c.computer), Logger: w.logger(c.name),
		OnLoss: func(all []leasehold.Loss) { c.lost(record, all) }, OnContact: func(n lookup.Contact) { c.contact(record, n.Lost) },
	}
	w.spawn(func() {
		for ctx.Err() == nil {
			opening, done := context.WithTimeout(ctx, 10*time.Minute)
			l, err := lookup.Open(opening, cfg)
			done()
			if err != nil {
				time.Sleep(time.Second)
				continue
			}
			c.mu.Lock()
			c.lookup = l
			c.mu.Unlock()
			c.observe(record, history.Event{Opened: true, Conservative: s.conservative})
			c.follow(ctx, l, record)
			_ = l.Close(context.Background())
		}
	})
}

// observe adds an event to the history. The losses of a space that moves state are judged by its client.
func (c *caller) observe(record *check.Caller, e history.Event) {
	e.At = c.space.world.now()
	if !c.space.moving || e.Table != nil {
		record.Observe(e)
	}
}

func (c *caller) beat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lookup != nil {
		c.observe(c.record, history.Event{})
	}
}

// follow records all tables.
func (c *caller) follow(ctx context.Context, l *lookup.Lookup, record *check.Caller) {
	for ctx.Err() == nil {
		changed := l.Changed()
		c.table(l, record)
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// table records the present table, and judges what a reader that resumes would receive.
func (c *caller) table(l *lookup.Lookup, record *check.Caller) {
	h, v := fnv.New64a(), tableView{}
	for start := leasehold.Key(0); ; {
		p, _ := l.At(start)
		if start == 0 {
			v.lsn = p.LSN
		}
		if p.LSN != v.lsn {
			return // there is a newer table
		}
		fmt.Fprintf(h, "%v %d %s %s", p.Range, p.Generation, p.Owner, p.Addr)
		if start = p.Range.Limit; start == 0 {
			break
		}
	}
	for _, key := range c.space.keys {
		p, _ := l.At(key)
		v.held = append(v.held, p.Generation)
		if p.LSN != v.lsn {
			return
		}
	}
	c.observe(record, history.Event{Table: &history.Table{LSN: v.lsn, Hash: h.Sum64()}})
	c.space.world.logf("%s: table %d %x", c.name, v.lsn, h.Sum64())
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.views); n > 0 && c.views[n-1].lsn == v.lsn {
		return
	}
	c.judgeResume(l, v)
	c.views = append(c.views, v)
}

// judgeResume is precision for a reader that resumes: nothing was lost of a lease that is held under the generation of
// that time.
func (c *caller) judgeResume(l *lookup.Lookup, now tableView) {
	if c.space.world.restored {
		return // a lease that is not proven across a gap counts as lost
	}
	for i := len(c.views) - 1; i >= 0; i /= 2 {
		then := c.views[i]
		for k, key := range c.space.keys {
			if then.held[k] != 0 && then.held[k] == now.held[k] && l.LSN() == now.lsn && l.LostSince(key, then.lsn) {
				c.space.world.violated("I4", "a resuming reader receives a loss that did not happen",
					"%s resumes at LSN %d from %d, and receives the loss of key %v, which was held all the time under generation %d", c.name, now.lsn, then.lsn, key, now.held[k])
				return
			}
		}
		if i == 0 {
			return
		}
	}
}

func (c *caller) lost(record *check.Caller, all []leasehold.Loss) {
	w := c.space.world
	for _, l := range all {
		w.logf("%s: %v", c.name, l)
		c.observe(record, history.Event{Loss: &history.Loss{
			Start: l.Range.Start, Limit: l.Range.Limit, Generation: l.Generation, Cause: l.Cause, LSN: l.LSN,
		}})
		if l.Cause == leasehold.CauseContact {
			c.judgeContact()
			continue
		}
		c.mu.Lock()
		c.judgeLoss(&l)
		c.mu.Unlock()
		c.space.judgeNecessity(c, &l)
		if c.space.client != nil && c == c.space.callers[0] {
			c.space.client.lost(&l)
		}
	}
}

// judgeLoss is precision: a key whose lease has the same generation before and after a reported loss was not lost.
func (c *caller) judgeLoss(l *leasehold.Loss) {
	n, _ := slices.BinarySearchFunc(c.views, l.LSN, func(v tableView, lsn leasehold.LSN) int {
		if v.lsn < lsn {
			return -1
		}
		return 1
	})
	if n == 0 || n == len(c.views) || c.space.world.restored { // a lease that is not proven across a gap counts as lost
		return
	}
	before, after := c.views[n-1], c.views[n]
	for k, key := range c.space.keys {
		if l.Range.Contains(key) && before.held[k] != 0 && before.held[k] == after.held[k] {
			c.space.world.violated("I4", "a loss was reported that did not happen",
				"%s receives {%v}: key %v was held under generation %d at LSN %d and still is at %d", c.name, l, key, after.held[k], before.lsn, after.lsn)
		}
	}
}

func (c *caller) contact(record *check.Caller, lost bool) {
	c.space.world.logf("%s: contact lost %t", c.name, lost)
	c.observe(record, history.Event{Contact: &history.Contact{Lost: lost}})
	if lost {
		c.judgeContact()
	}
}

// judgeContact is precision: contact is lost only after a fault.
func (c *caller) judgeContact() {
	s := c.space
	excused := later(c.due(), s.world.group.due()).Add(s.stale*11/10 + 5*time.Second)
	if now := time.Now(); now.After(excused) {
		s.world.violated("I4", "contact is lost without a fault", "%s has lost contact, %v after the last fault that excuses it", c.name, now.Sub(excused))
	}
}

func (w *world) closeCaller(c *caller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.node == nil {
		return
	}
	c.cancel()
	c.record.Gone()
	c.node.Kill()
	c.node, c.lookup = nil, nil
}
