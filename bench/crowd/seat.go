package crowd

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	machine "github.com/leasehold-dev/leasehold/internal/machine/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A client is an owner or a lookup.
type client interface {
	begin()
	end()
	listen() listener
}

// A seat is a connection, and who shares it. Those who sit there may be replaced.
type seat struct {
	crowd  *crowd
	number int
	path   string
	enter  func(stream int) (client, error) // someone who has not been there yet

	mu      sync.Mutex
	conn    *conn // nil while there is none
	clients []client
	stop    context.CancelFunc
	done    chan struct{}
}

// sources is how many connections come from each address of the loopback: each
// address has only so many ports.
const sources = 2000

func (s *seat) source() net.IP { return net.IPv4(127, 7, byte(s.number/sources), 1) }

// open lets new ones in.
func (s *seat) open(streams int) error {
	clients := make([]client, streams)
	for i := range clients {
		var err error
		if clients[i], err = s.enter(i); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	s.mu.Lock()
	s.clients, s.stop, s.done = clients, stop, make(chan struct{})
	s.mu.Unlock()
	go s.serve(ctx, clients)
	return nil
}

// serve connects until it is stopped, again whenever the connection breaks, and then to
// another manager, if there are several.
func (s *seat) serve(ctx context.Context, clients []client) {
	defer close(s.done)
	begun := false
	managers, failures := s.crowd.managers, 0
	for at := s.number; ctx.Err() == nil; at++ {
		listeners := make([]listener, len(clients))
		for i, c := range clients {
			listeners[i] = c.listen()
		}
		c, err := dial(managers[at%len(managers)], s.source(), s.path, &s.crowd.traffic, listeners)
		failures++
		if err == nil {
			failures = 0
			s.set(c)
			stopped := context.AfterFunc(ctx, func() { _ = c.net.Close() })
			s.greet(clients, begun)
			begun = true
			_ = c.read()
			s.set(nil)
			stopped()
			_ = c.net.Close()
		}
		if ctx.Err() != nil {
			return
		}
		s.crowd.tally.broken.Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(s.backoff(failures)):
		}
	}
}

// backoff is how long to wait before the next connection, after so many failures in a row. A lookup waits as long as
// the library's does before it asks again.
func (s *seat) backoff(failures int) time.Duration {
	if s.path == leaseholdv1.LookupService_Follow_FullMethodName {
		return jitter(min(retry<<min(failures, 6), s.crowd.poll))
	}
	return jitter(time.Second)
}

// greet lets them speak for the first time, or says that they were cut off.
func (s *seat) greet(clients []client, again bool) {
	for _, c := range clients {
		switch c := c.(type) {
		case *owner:
			if again {
				c.step(machine.HungUp{})
				c.wake()
				continue
			}
			c.begin()
		case *lookup:
			if again {
				c.wake()
				continue
			}
			c.begin()
		}
	}
}

func (s *seat) set(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = c
}

// say sends a message on a stream, if there is a connection. One that fails ends,
// and its reader notices.
func (s *seat) say(stream int, message []byte) {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c != nil {
		_ = c.send(stream, message)
	}
}

// moveOn ends the connection if another manager leads, so that it turns to the next.
func (s *seat) moveOn(leader string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && s.conn.net.RemoteAddr().String() != leader {
		_ = s.conn.net.Close()
	}
}

// close ends those who are there. Owners say goodbye first, unless they crash.
func (s *seat) close(crash bool) {
	s.mu.Lock()
	clients := s.clients
	s.mu.Unlock()
	for _, c := range clients {
		if o, ok := c.(*owner); ok && !crash {
			select {
			case <-o.leave():
			case <-time.After(farewell):
				s.crowd.tally.unheard.Add(1)
			}
		}
		c.end()
	}
	s.stop()
	<-s.done
}

// farewell is how long an owner waits for an answer to its goodbye.
const farewell = 15 * time.Second

// A crowd is all seats.
type crowd struct {
	managers        []string
	namespace       string
	clock           *clock.Clock
	traffic         traffic
	tally           tally
	owners, lookups []*seat
	poll            time.Duration // of lookups
	lsn             uint64        // that lookups start with
}

func (c *crowd) ownerSeat(number int) *seat {
	s := &seat{crowd: c, number: number, path: leaseholdv1.OwnerService_Hold_FullMethodName}
	s.enter = func(stream int) (client, error) {
		o, err := newOwner(c.clock, &c.tally, c.namespace, number, func(message []byte) { s.say(stream, message) })
		if err == nil && len(c.managers) > 1 {
			o.moveOn = s.moveOn
		}
		return o, err
	}
	return s
}

func (c *crowd) lookupSeat(number int) *seat {
	s := &seat{crowd: c, number: number, path: leaseholdv1.LookupService_Follow_FullMethodName}
	s.enter = func(stream int) (client, error) {
		l := &lookup{namespace: c.namespace, poll: c.poll, lsn: c.lsn, tally: &c.tally, say: func(message []byte) { s.say(stream, message) }}
		if len(c.managers) > 1 {
			l.hangUp = func() { s.moveOn("") }
		}
		return l, nil
	}
	return s
}

// counts says how everybody is.
func (c *crowd) counts() Counts {
	t := &c.tally
	out := Counts{
		Expired: t.expired.Load(), Stale: t.stale.Load(), Gaps: t.gaps.Load(), Repeats: t.repeats.Load(),
		Broken: t.broken.Load(), Strange: t.strange.Load(), Unheard: t.unheard.Load(),
		In: c.traffic.in.Load(), Out: c.traffic.out.Load(), Peak: c.traffic.peak.Load(),
	}
	for _, s := range c.owners {
		for _, o := range s.sitting() {
			held := o.(*owner).holds()
			if len(held) > 0 {
				out.Holding++
			}
			for _, l := range held {
				out.Share += (float64(l.Range.Last()-l.Range.Start) + 1) / (1 << 64)
			}
		}
	}
	out.Lowest = 1<<64 - 1
	for _, s := range c.lookups {
		for _, l := range s.sitting() {
			if lsn, proof := l.(*lookup).knows(); proof {
				out.Proven++
				out.Lowest = min(out.Lowest, lsn)
			}
		}
	}
	tables, leases := t.taken()
	for _, d := range tables {
		out.WorstTable = max(out.WorstTable, d)
	}
	for _, d := range leases {
		out.WorstLease = max(out.WorstLease, d)
	}
	return out
}

func (s *seat) sitting() []client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients
}
