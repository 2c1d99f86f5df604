package manager_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// A service is two owners and a lookup, which run all the time.
type service struct {
	c       *cluster
	owners  []*owner.Owner
	held    map[leasehold.OwnerID][]leasehold.Lease
	lookup  *lookup.Lookup
	lsn     leasehold.LSN
	cut     atomic.Bool  // no manager is reachable for the owners
	revoked atomic.Int64 // leases of OnRevoke
	losses  atomic.Int64 // losses that the lookup has reported
}

// service starts the owners and the lookup of an existing namespace, and returns when the owners hold all keys.
func (c *cluster) service() *service {
	c.t.Helper()
	s := &service{c: c}
	for _, name := range []string{"a", "b"} {
		revoked := func(l []leasehold.Lease, _ leasehold.Cause) { s.revoked.Add(int64(len(l))) }
		s.owners = append(s.owners, c.joinBehind(&s.cut, name, func(cfg *owner.Config) { cfg.OnRevoke = revoked }))
	}
	eventually(c.t, time.Minute, "both have leases, and all keys are owned", func() bool {
		return complete(s.owners...) && len(s.owners[0].Leases()) > 0 && len(s.owners[1].Leases()) > 0
	})
	time.Sleep(20 * time.Second) // all moves have ended
	var err error
	s.lookup, err = lookup.Open(c.t.Context(), lookup.Config{
		Namespace: "pool", Managers: c.names(), Credentials: insecure.NewCredentials(), DialOptions: c.dialOptions(),
		OnLoss: func(l []leasehold.Loss) { s.losses.Add(int64(len(l))) },
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = s.lookup.Close(context.Background()) })
	s.held, s.lsn = heldBy(s.owners...), s.lookup.LSN()
	s.revoked.Store(0)
	return s
}

// joinBehind adds an owner that reaches no manager while cut is set.
func (c *cluster) joinBehind(cut *atomic.Bool, name string, set func(*owner.Config)) *owner.Owner {
	c.t.Helper()
	cfg := c.ownerConfig(name)
	set(&cfg)
	cfg.DialOptions = append(cfg.DialOptions, grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		if cut.Load() {
			return nil, errors.New("cut off")
		}
		conn, err := c.dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		return &cutConn{conn, cut}, nil
	}))
	o, err := owner.Join(c.t.Context(), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { c.leave(o) })
	return o
}

// suspended reports whether all leases are.
func (s *service) suspended() bool {
	return !slices.ContainsFunc(s.owners, func(o *owner.Owner) bool {
		return len(o.Leases()) != 0 || len(o.SuspendedLeases()) != len(s.held[o.Name()])
	})
}

// resumes waits until all keys are owned and the lookup follows, and fails unless the leases are the same as
// before. It returns the time until the keys were owned.
func (s *service) resumes(within time.Duration) time.Duration {
	s.c.t.Helper()
	begun := time.Now()
	eventually(s.c.t, within, "all keys are owned", func() bool { return complete(s.owners...) })
	took := time.Since(begun)
	eventually(s.c.t, time.Minute, "the lookup follows", func() bool { return follows(s.lookup, s.owners...) })
	s.lostNothing()
	time.Sleep(30 * time.Second) // silent owners have expired
	s.lostNothing()
	return took
}

// lostNothing fails if a lease has ended, or was reported as lost.
func (s *service) lostNothing() {
	s.c.t.Helper()
	if ended := endedSince(s.held, s.owners...); len(ended) > 0 {
		s.c.t.Errorf("%v: these leases ended; they were %v and are %v", ended, s.held, heldBy(s.owners...))
	}
	if n := s.revoked.Load(); n > 0 {
		s.c.t.Errorf("OnRevoke was called for %d leases", n)
	}
	if n := s.losses.Load(); n > 0 {
		s.c.t.Errorf("the lookup has reported %d losses", n)
	}
	for name, l := range map[string]*lookup.Lookup{"connected": s.lookup, "resumed": s.c.open()} {
		if losses := collectLosses(s.c.t, l, s.lsn, time.Second); len(losses) > 0 {
			s.c.t.Errorf("%s: %v is reported", name, losses)
		}
	}
}

// outages returns the durations of outages. A day takes half a minute to simulate, so one variant of each test has
// it.
func outages(day bool) []time.Duration {
	all := []time.Duration{time.Second, 5 * time.Second, 20 * time.Second, 90 * time.Second, time.Hour}
	if testing.Short() {
		return all[2:4]
	}
	if day {
		all = append(all, 24*time.Hour)
	}
	return all
}

// group returns the names of n managers.
func group(n int) []string { return []string{"m1", "m2", "m3"}[:n] }

// serve starts a group, and a service.
func (c *cluster) serve(managers []string) *service {
	c.t.Helper()
	for _, name := range managers {
		c.start(name)
	}
	c.leads(time.Minute)
	c.create(managers[0], pool())
	return c.service()
}

// All managers are stopped, or crash, while owners and lookups run, and are started again. Every lease continues
// with its generation, and no loss is reported. After a minute a restored store cannot be excluded, and leases resume
// when a lease that it has lost would have expired.
func TestManagerOutage(t *testing.T) {
	for _, managers := range []int{1, 3} {
		for _, crash := range []bool{false, true} {
			for _, outage := range outages(managers == 3 && crash) {
				end := "stopped"
				if crash {
					end = "crashed"
				}
				t.Run(fmt.Sprintf("%d %s for %v", managers, end, outage), func(t *testing.T) { managerOutage(t, group(managers), crash, outage) })
			}
		}
	}
}

func managerOutage(t *testing.T, managers []string, crash bool, outage time.Duration) {
	inBubble(t, func(t *testing.T, c *cluster) {
		s := c.serve(managers)
		for _, name := range managers {
			if crash {
				c.crash(name)
			} else {
				c.stop(name)
			}
		}
		time.Sleep(outage)
		if s.suspended() != (outage > 10*time.Second) {
			t.Errorf("after %v the leases of a are %v, and suspended %v", outage, s.owners[0].Leases(), s.owners[0].SuspendedLeases())
		}
		for _, name := range managers {
			c.start(name)
		}
		const lease = 12 * time.Second // 10 s at the slowest clock
		took := s.resumes(lease + 10*time.Second)
		if uncertain := outage > time.Minute; uncertain != (took >= lease) {
			t.Errorf("all keys are owned %v after the start", took)
		}
	})
}

// A brokenStore fails all requests while it is down.
type brokenStore struct {
	store.Store
	down *atomic.Bool
}

func whileUp[R any](s *brokenStore, do func() (R, error)) (r R, err error) {
	if s.down.Load() {
		return r, errMute
	}
	return do()
}

func (s *brokenStore) Record(ctx context.Context, fresh bool) (storage.Record, error) {
	return whileUp(s, func() (storage.Record, error) { return s.Store.Record(ctx, fresh) })
}

func (s *brokenStore) Swap(ctx context.Context, prev storage.Version, next storage.Record) (storage.Version, storage.Outcome, error) {
	if s.down.Load() {
		return 0, storage.Unknown, errMute
	}
	return s.Store.Swap(ctx, prev, next)
}

func (s *brokenStore) Catalog(ctx context.Context) (*storage.Catalog, error) {
	return whileUp(s, func() (*storage.Catalog, error) { return s.Store.Catalog(ctx) })
}

func (s *brokenStore) Append(ctx context.Context, b *storage.Batch) (storage.Outcome, error) {
	if s.down.Load() {
		return storage.Unknown, errMute
	}
	return s.Store.Append(ctx, b)
}

func (s *brokenStore) End(ctx context.Context, ns leasehold.Namespace) (storage.End, error) {
	return whileUp(s, func() (storage.End, error) { return s.Store.End(ctx, ns) })
}

func (s *brokenStore) Load(ctx context.Context, ns leasehold.Namespace) (*storage.State, error) {
	return whileUp(s, func() (*storage.State, error) { return s.Store.Load(ctx, ns) })
}

// The store fails under running managers, for any length of time. They can exclude a restore, so leases resume at once.
func TestStoreOutage(t *testing.T) {
	for _, managers := range []int{1, 3} {
		for _, outage := range outages(managers == 1) {
			t.Run(fmt.Sprintf("%d managers, %v", managers, outage), func(t *testing.T) {
				inBubble(t, func(t *testing.T, c *cluster) {
					var down atomic.Bool
					c.wrap = func(s store.Store) store.Store { return &brokenStore{s, &down} }
					s := c.serve(group(managers))
					down.Store(true)
					time.Sleep(outage)
					if outage > 20*time.Second && !s.suspended() {
						t.Errorf("after %v the leases of a are %v: the store was there", outage, s.owners[0].Leases())
					}
					down.Store(false)
					t.Logf("all keys are owned %v after the store is back", s.resumes(22*time.Second))
				})
			})
		}
	}
}

// All owners are cut off from managers that run: no other owner could have their ranges.
func TestOwnersCutOff(t *testing.T) {
	for _, managers := range []int{1, 3} {
		for _, outage := range outages(managers == 1) {
			t.Run(fmt.Sprintf("%d managers, %v", managers, outage), func(t *testing.T) {
				inBubble(t, func(t *testing.T, c *cluster) {
					s := c.serve(group(managers))
					s.cut.Store(true)
					time.Sleep(outage)
					if s.suspended() != (outage > 10*time.Second) {
						t.Errorf("after %v the leases of a are %v, and suspended %v", outage, s.owners[0].Leases(), s.owners[0].SuspendedLeases())
					}
					s.cut.Store(false)
					t.Logf("all keys are owned %v after that", s.resumes(10*time.Second))
				})
			})
		}
	}
}
