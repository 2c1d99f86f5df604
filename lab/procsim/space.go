package procsim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/check"
	"github.com/leasehold-dev/leasehold/lab/chaos/history"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// names are those of the keys that are checked.
var names = history.Watched(16)

// A space is a namespace with its owners and lookups.
type space struct {
	spacePlan
	excuses // of its keys without an owner
	world   *world
	keys    []leasehold.Key
	callers []*caller
	client  *client // of a moving space

	mu      sync.Mutex
	servers []*server
	book    *check.Book
	newest  leasehold.Generation
	vacant  bool // the last sample found a key without an owner
}

func newSpace(w *world, p spacePlan) *space {
	s := &space{spacePlan: p, world: w, keys: history.Keys(names)}
	s.book = check.New(s.keys, p.stale*11/10, 10*time.Second)
	if p.moving {
		s.client = newClient(s)
	}
	return s
}

// hold is the longest time, on any clock, for which a leader waits for a lease to expire.
func (p *spacePlan) hold() time.Duration { return p.lease * 12 / 10 * 11 / 10 }

// A server is a computer with an owner.
type server struct {
	*host
	excuses // of its expired leases
	space   *space
	number  int
	cancel  context.CancelFunc

	// Guarded by the mutex of the space.
	owner   *owner.Owner // nil: not joined
	values  *leasemap.Map[int]
	checked map[leasehold.Key]owner.Lease // the last of each key
	slept   time.Time                     // end of the last suspend
	began   time.Time
}

func (s *space) newServer() *server {
	v := &server{host: s.world.newHost(fmt.Sprintf("%s-%c", s.name, 'a'+len(s.servers))), space: s, number: len(s.servers)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers = append(s.servers, v)
	return v
}

func (v *server) addr() string { return v.name + ":8080" }

// startServer starts an owner, which joins in the background.
func (w *world) startServer(v *server) {
	s := v.space
	node := w.net.Host(v.name)
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	v.node, v.cancel, v.owner, v.values, v.checked, v.began = node, cancel, nil, nil, make(map[leasehold.Key]owner.Lease), time.Now()
	s.mu.Unlock()
	sampled := func(event string) func([]leasehold.Lease) {
		return func(all []leasehold.Lease) {
			w.logf("%s: %s %v", v.name, event, all)
			s.sample(false)
		}
	}
	cfg := owner.Config{
		Namespace: s.name, Managers: w.addrs(), Name: leasehold.OwnerID(v.name), Addr: v.addr(), WaitForPredecessor: true,
		Credentials: insecure.NewCredentials(), DialOptions: dialer(node), Clock: clock.NewOn(v.computer), Logger: w.logger(v.name),
		OnGrant: sampled("granted"), OnSuspend: sampled("suspended"), OnResume: sampled("resumed"),
		OnRevoke: func(all []leasehold.Lease, cause leasehold.Cause) { sampled("ended, " + cause.String())(all) },
	}
	w.spawn(func() {
		defer cancel()
		for ctx.Err() == nil {
			o, values, err := v.join(ctx, cfg)
			if err == nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				if v.node != node {
					w.spawn(func() { _ = o.Close(ended()) })
					return
				}
				v.owner, v.values = o, values
				return
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	})
}

func (v *server) join(ctx context.Context, cfg owner.Config) (*owner.Owner, *leasemap.Map[int], error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if !v.space.moving {
		o, err := owner.Join(ctx, cfg)
		return o, nil, err
	}
	l, err := v.node.Listen(0)
	if err != nil {
		return nil, nil, err
	}
	cfg.Mover = &owner.Mover{
		Listener: l, Advertise: l.Addr().String(), DialOptions: cfg.DialOptions,
		Credentials: insecure.NewCredentials(), ServerCredentials: insecure.NewCredentials(),
	}
	m, err := leasemap.Join(ctx, cfg, leasemap.Config[int]{})
	if err != nil {
		return nil, nil, err
	}
	return m.Owner(), m, nil
}

// take removes the process of a server.
func (v *server) take() (node interface{ Kill() }, leave func(context.Context) error) {
	v.space.mu.Lock()
	defer v.space.mu.Unlock()
	node, leave = v.node, func(context.Context) error { return nil }
	switch {
	case v.values != nil:
		leave = v.values.Close
	case v.owner != nil:
		leave = v.owner.Close
	}
	v.cancel()
	v.node, v.owner, v.values, v.frozen = nil, nil, nil, false
	return node, leave
}

// killServer ends an owner as kill -9 does.
func (w *world) killServer(v *server) {
	if !v.alive() {
		return
	}
	node, leave := v.take()
	node.Kill()
	w.spawn(func() { _ = leave(ended()) })
}

// stopServer ends an owner as SIGTERM does. The channel is closed when the process has ended.
func (w *world) stopServer(v *server) <-chan struct{} {
	node, leave := v.take()
	gone := make(chan struct{})
	w.spawn(func() {
		defer close(gone)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := leave(ctx); err != nil {
			w.logf("%s: leaving failed", v.name)
		}
		node.Kill()
	})
	return gone
}

// up returns a server's owner, if its process runs and has joined.
func (v *server) up() *owner.Owner {
	if !v.runs() {
		return nil
	}
	return v.owner
}

// sample checks all keys at all owners at one instant of true time.
func (s *space) sample(judge bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.world.now()
	unowned := leasehold.Key(0)
	vacant := false
	for _, key := range s.keys {
		owned := false
		for _, v := range s.servers {
			if o := v.up(); o != nil {
				owned = s.observe(v, o, key, at) || owned
			}
		}
		if !owned && !vacant {
			vacant, unowned = true, key
		}
	}
	if judge {
		s.judgeVacant(vacant, unowned)
		for _, c := range s.callers {
			c.beat()
		}
	}
}

// observe records a successful check of a key, and a lease that is still held.
func (s *space) observe(v *server, o *owner.Owner, key leasehold.Key, at oracle.Time) bool {
	record := func(l owner.Lease) {
		s.newest = max(s.newest, l.Generation)
		now := oracle.Span{Before: at, After: at}
		s.book.Observe(v.name, oracle.Record{About: oracle.Belief, Key: key, Generation: l.Generation, Session: o.Session(), Check: now, Held: now})
	}
	if old, ok := v.checked[key]; ok && o.Held(old) {
		record(old)
	}
	l, ok := o.Check(key)
	if !ok {
		return false
	}
	if v.checked[key] != l {
		v.checked[key] = l
	}
	record(l)
	return true
}

// judgeVacant is I6 at all times: a key without an owner is excused by a recent fault, or there is no owner that could
// have it. s.mu is held.
func (s *space) judgeVacant(vacant bool, key leasehold.Key) {
	now := time.Now()
	if vacant != s.vacant {
		s.vacant = vacant
		s.world.logf("%s: vacant %t", s.name, vacant)
	}
	able := slices.ContainsFunc(s.servers, func(v *server) bool { return v.up() != nil && now.After(v.due()) })
	if vacant && able && now.After(s.due()) && s.world.complete {
		s.world.violated("I6", "a key has no owner", "%s: key %v has no owner, %v after the last fault that excuses it", s.name, key, now.Sub(s.due()))
	}
}

func (s *space) close() {
	if s.client != nil {
		s.client.stop()
	}
	for _, c := range s.callers {
		s.world.closeCaller(c)
	}
	for _, v := range s.servers {
		s.world.killServer(v)
	}
}

// excuses is the time until which faults excuse an effect.
type excuses struct {
	mu sync.Mutex
	at time.Time
}

func (e *excuses) until(t time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at = later(e.at, t)
}

func (e *excuses) due() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at
}
