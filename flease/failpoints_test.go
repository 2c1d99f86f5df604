//go:build failpoints

package flease

import (
	"context"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// A crowd acquires and releases one resource on all members.
type crowd struct {
	mu     sync.Mutex
	leases map[ID]*Lease
	turns  int
}

// valid returns the holders, and the number of leases so far.
func (c *crowd) valid() (holders []ID, turns int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, l := range c.leases {
		if l.Valid() {
			holders = append(holders, id)
		}
	}
	return holders, c.turns
}

func (c *crowd) has(id ID, l *Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leases[id] = l; l == nil {
		delete(c.leases, id)
	} else {
		c.turns++
	}
}

// wants acquires, holds and releases the resource on a member until the context ends.
func (c *crowd) wants(ctx context.Context, n *Node) {
	for ctx.Err() == nil {
		l, err := n.Acquire(ctx, "r")
		if err != nil {
			return
		}
		c.has(n.Self(), l)
		select {
		case <-time.After(5 * time.Second): // it is renewed meanwhile
		case <-l.Done():
		}
		_ = l.Release(ctx)
	}
}

// At every failpoint a member is killed or paused: there are never two holders, and a member acquires
// the lease again in time.
func TestEveryPoint(t *testing.T) {
	t.Setenv("GODEBUG", "tracebacklabels=1") // see failpoint.Who
	for _, point := range failpoint.Names() {
		if !strings.HasPrefix(point, "flease/") {
			continue
		}
		for fate, pause := range map[string]time.Duration{"kill": 0, "pause": 300 * time.Millisecond, "pause for long": 15 * time.Second} {
			t.Run(point+"/"+fate, func(t *testing.T) {
				t.Cleanup(failpoint.Reset)
				within(t, func(t *testing.T) { stumble(t, point, pause) })
			})
		}
	}
}

func stumble(t *testing.T, point string, pause time.Duration) {
	s := newSystem(t, 3, nil)
	c := &crowd{leases: make(map[ID]*Lease)}
	ctx, stop := context.WithCancel(t.Context())
	var wanting sync.WaitGroup
	defer wanting.Wait()
	defer stop()
	begin := func(id ID) { // a restarted member, whose goroutines have its name
		pprof.Do(ctx, pprof.Labels("node", strconv.Itoa(int(id))), func(ctx context.Context) {
			n := s.start(id)
			wanting.Go(func() { c.wants(ctx, n) })
		})
	}
	for _, id := range []ID{1, 2, 3} {
		s.kill(id)
		begin(id)
	}
	await := func(turns int, most time.Duration) {
		t.Helper()
		_, before := c.valid()
		for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			holders, now := c.valid()
			if len(holders) > 1 {
				t.Fatalf("members %v have the lease", holders)
			}
			if now >= before+turns {
				return
			}
			if time.Since(begun) > most {
				t.Fatalf("no holder for %v", most)
			}
		}
	}
	await(3, time.Minute)

	met, resume := make(chan ID, 1), make(chan struct{})
	failpoint.Once(point, func() {
		if pause > 0 {
			time.Sleep(pause)
			met <- 0
			return
		}
		id, _ := strconv.Atoi(failpoint.Who())
		met <- ID(id)
		<-resume
	})
	if point == "flease/before-opening" {
		s.kill(3)
		wanting.Go(func() { begin(3) })
	}
	victim := ID(0)
	for passed := false; !passed; {
		select {
		case victim = <-met:
			passed = true
		case <-time.After(5 * time.Millisecond):
			if holders, _ := c.valid(); len(holders) > 1 {
				t.Fatalf("members %v have the lease", holders)
			}
		}
	}
	switch {
	case pause > 0:
	case victim == 0:
		t.Fatal("the member that passed the point is unknown")
	case point == "flease/before-opening":
		close(resume) // it was not paused: the next one is
	default:
		c.has(victim, nil)
		for other := range s.nodes {
			s.network.Cut(victim, other)
			s.network.Cut(other, victim)
		}
		time.AfterFunc(1, func() { close(resume) })
		s.kill(victim)
		begin(victim)
	}
	await(1, takeover)
	await(6, time.Minute)
}
