package agent

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// A server is a program that stays joined and refreshes its view of the keys it owns, until it is
// stopped.
type server struct {
	*program
	stop context.CancelFunc // stops the refresh; the view stays until it expires

	mu   sync.Mutex
	view view
}

func startServer(t *testing.T, c *leaseholdtest.Cluster, node string, running *sync.WaitGroup) *server {
	s := &server{program: newProgram(t, c, node)}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.http.Timeout = 30 * time.Second // the test is about late responses
	running.Go(func() {
		for ctx.Err() == nil {
			s.live()
			time.Sleep(100 * time.Millisecond)
		}
	})
	return s
}

// live sends one request, and joins if necessary.
func (s *server) live() {
	if s.id != "" {
		b, err := s.ask()
		if err == nil {
			s.mu.Lock()
			if b.until.After(s.view.until) {
				s.view = b
			}
			s.mu.Unlock()
			return
		}
	}
	var joined joinAnswer
	_, err := s.call("POST", "/v1/owners", object{"namespace": "test", "addr": s.node.Addr(), "name": s.node.Name(), "ttl_ms": 2000}, &joined)
	if err == nil {
		s.id = joined.ID
	}
}

func (s *server) owns(key leasehold.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.owns(key)
}

// A pool is three computers with an agent and a server each, and stopped
// servers.
type pool struct {
	t       *testing.T
	c       *leaseholdtest.Cluster
	agents  map[string]*Agent
	servers map[string]*server
	before  []*server
	running sync.WaitGroup
	owned   int // number of observations of an owner
}

func (p *pool) start(name string) {
	p.agents[name] = startAgent(p.t, p.c, name)
	p.servers[name] = startServer(p.t, p.c, name, &p.running)
}

// kill kills a computer's agent. Its server keeps its view.
func (p *pool) kill(name string) {
	p.servers[name].stop()
	p.before = append(p.before, p.servers[name])
	delete(p.servers, name)
	p.c.Node(name).Kill()
}

// watch observes some keys for a time.
func (p *pool) watch(d time.Duration) {
	p.t.Helper()
	for began := time.Now(); time.Since(began) < d; time.Sleep(20 * time.Millisecond) {
		for i := range leasehold.Key(16) {
			var owners []string
			for _, s := range append(slices.Collect(maps.Values(p.servers)), p.before...) {
				if s.owns(i << 60) {
					owners = append(owners, s.node.Name())
				}
			}
			p.owned += len(owners)
			if len(owners) > 1 {
				p.t.Fatalf("%v is owned by %v", i<<60, owners)
			}
		}
	}
}

// TestNoTwoProgramsOwnAKey: with faults of agents and of the network, no two programs own a key at
// the same time.
func TestNoTwoProgramsOwnAKey(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{Lease: 5 * time.Second}, func(t *testing.T, c *leaseholdtest.Cluster) {
				torment(t, c, rand.New(rand.NewPCG(seed, 1)))
			})
		})
	}
}

func torment(t *testing.T, c *leaseholdtest.Cluster, random *rand.Rand) {
	p := &pool{t: t, c: c, agents: map[string]*Agent{}, servers: map[string]*server{}}
	names := []string{"a", "b", "c"}
	for _, name := range names {
		p.start(name)
	}
	defer p.running.Wait()
	defer func() {
		for _, s := range p.servers {
			s.stop()
		}
	}()
	within := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }
	for range 15 {
		name := names[random.IntN(len(names))]
		n := c.Node(name)
		switch random.IntN(5) {
		case 0: // messages in flight are delayed
			n.Pause()
			p.watch(within(4 * time.Second))
			n.Resume()
		case 1:
			n.Cut()
			p.watch(within(8 * time.Second))
			n.Heal()
		case 2: // it releases all leases
			closing := make(chan struct{})
			go func() { defer close(closing); p.agents[name].Close(t.Context()) }()
			p.watch(2 * time.Second)
			<-closing
			p.kill(name)
			p.start(name)
		default:
			p.kill(name)
			p.watch(within(8 * time.Second))
			p.start(name)
		}
		p.watch(within(3 * time.Second))
	}
	c.Settle()
	p.watch(time.Second)
	if p.owned == 0 {
		t.Error("no key ever had an owner")
	}
}

// TestLateResponseIsExpired: a long delayed response grants no validity, even if it was correct when it was
// sent. The validity counts from the request.
func TestLateResponseIsExpired(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Latency: 10 * time.Millisecond}, func(t *testing.T, c *leaseholdtest.Cluster) {
		startAgent(t, c, "a")
		p := newProgram(t, c, "p")
		p.base = "http://a:7404"
		p.join(c, object{"ttl_ms": 60000})
		c.Advance(time.Second)
		began := time.Now()
		if b, err := p.ask(); err != nil || !b.owns(0) {
			t.Fatalf("the only program does not own all keys: %v, %v", b, err)
		}
		took := time.Since(began)
		c.Advance(5 * time.Second)
		answers := make(chan view)
		go func() {
			b, err := p.ask()
			if err != nil {
				t.Error(err)
			}
			answers <- b
		}()
		time.Sleep(took - 5*time.Millisecond) // the response is in flight
		c.Node("p").Cut("a")
		startAgent(t, c, "b")
		other := newProgram(t, c, "b")
		other.join(c, nil)
		owned := func() (theirs leasehold.Key) {
			for ; ; time.Sleep(10 * time.Millisecond) {
				b, err := other.ask()
				if err != nil {
					t.Fatal(err)
				}
				for _, key := range probes() {
					if b.owns(key) {
						return key
					}
				}
			}
		}()
		c.Node("p").Heal()
		if b := <-answers; len(b.leases) == 0 {
			t.Error("no response before the network partition")
		} else if b.owns(owned) {
			t.Errorf("two programs own %v: a delayed response extended the validity", owned)
		}
	})
}
