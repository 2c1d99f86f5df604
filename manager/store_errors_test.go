package manager_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A fullStore rejects writes at once, like a full etcd.
type fullStore struct {
	store.Store
	full   atomic.Bool
	kept   atomic.Bool // writes of the leader record succeed
	writes atomic.Int64
}

func (s *fullStore) refuses() bool {
	if !s.full.Load() {
		return false
	}
	s.writes.Add(1)
	return true
}

func (s *fullStore) Swap(ctx context.Context, prev storage.Version, next storage.Record) (storage.Version, storage.Outcome, error) {
	if !s.kept.Load() && s.refuses() {
		return 0, storage.Unknown, errors.New("no space")
	}
	return s.Store.Swap(ctx, prev, next)
}

func (s *fullStore) Append(ctx context.Context, b *storage.Batch) (storage.Outcome, error) {
	if s.refuses() {
		return storage.Unknown, errors.New("no space")
	}
	return s.Store.Append(ctx, b)
}

// Writes to a store that rejects them at once are retried with a backoff, and succeed when the store accepts
// writes again.
func TestFullStore(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		full := &fullStore{}
		c.wrap = func(s store.Store) store.Store {
			full.Store = s
			return full
		}
		c.start("m1")
		c.create("m1", pool())
		a := c.join("a")
		eventually(t, 5*time.Second, "a has everything", func() bool { return complete(a) })
		full.full.Store(true)
		c.leave(a) // something to write
		full.writes.Store(0)
		time.Sleep(10 * time.Second)
		if n := full.writes.Load(); n == 0 || n > 300 {
			t.Errorf("%d writes in 10 s, want a few per second", n)
		}
		full.full.Store(false)
		b := c.join("b")
		eventually(t, 30*time.Second, "b has everything", func() bool { return complete(b) })
	})
}

// While the store is full no grants are sent to owners or lookups, because they are not stored. Owners keep
// their leases.
func TestFullStoreGrantsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		full := &fullStore{}
		full.kept.Store(true)
		c.wrap = func(s store.Store) store.Store {
			full.Store = s
			return full
		}
		c.start("m1")
		c.create("m1", pool())
		l := c.open(addr("m1"))
		full.full.Store(true)
		a, b := c.join("a"), c.join("b")
		for range 60 {
			time.Sleep(time.Second)
			if n := len(a.Leases()) + len(b.Leases()); n > 0 {
				t.Fatalf("%d leases were granted before they were stored", n)
			}
			if _, found := l.Find(7); found {
				t.Fatal("a lookup finds an owner before the grant is stored")
			}
		}
		if full.writes.Load() == 0 {
			t.Error("no write was attempted: the test is void")
		}
		full.full.Store(false)
		eventually(t, 30*time.Second, "all keys are owned", func() bool { return complete(a, b) })
		full.full.Store(true)
		held := append(a.Leases(), b.Leases()...)
		time.Sleep(time.Minute)
		if now := append(a.Leases(), b.Leases()...); !slices.Equal(now, held) {
			t.Errorf("leases were %v, and are %v", held, now)
		}
	})
}

// A call that is cancelled before its reply has created the namespace all the same, and the leader
// serves it.
func TestCancelledCreateTakesEffect(t *testing.T) {
	for attempt := range 8 {
		t.Run(fmt.Sprint(attempt), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				slow := &slowCatalog{}
				c.wrap = func(s store.Store) store.Store {
					slow.Store = s
					return slow
				}
				c.start("m1")
				eventually(t, 5*time.Second, "m1 leads", func() bool { return c.status("m1").GetLeader() == addr("m1") })
				ctx, cancel := context.WithCancel(t.Context())
				slow.saved = cancel
				_, err := c.admin("m1").CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: pool()})
				if err == nil {
					t.Fatal("the call was not cancelled before the reply")
				}
				eventually(t, 5*time.Second, "the leader leads the namespace", func() bool { return len(c.status("m1").GetNamespaces()) == 1 })
			})
		})
	}
}

// A slowCatalog cancels the call after its write is done.
type slowCatalog struct {
	store.Store
	saved func()
}

func (s *slowCatalog) SaveCatalog(ctx context.Context, next *storage.Catalog) (storage.Outcome, error) {
	outcome, err := s.Store.SaveCatalog(ctx, next)
	s.saved()
	synctest.Wait()
	return outcome, err
}

// After a namespace is created the leader has it, whatever events are queued.
func TestCreatedNamespaceIsServed(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		for i := range 50 {
			name := fmt.Sprintf("ns%d", i)
			for range 20 { // events that must not come between
				go c.follow(addr("m1"), "made-up")
			}
			c.create("m1", &leaseholdv1.NamespaceConfig{Name: name})
			if found := len(c.status("m1").GetNamespaces()); found != i+1 {
				t.Fatalf("%d namespaces were created, and the leader has %d", i+1, found)
			}
		}
	})
}

// follow sends one request for a table to a manager.
func (c *cluster) follow(at string, ns leasehold.Namespace) {
	conn, err := grpc.NewClient("passthrough:///"+at, append(wire.DialOptions(), c.dialOptions()...)...)
	if err != nil {
		return
	}
	defer conn.Close() //nolint:errcheck // unused
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
	defer cancel()
	stream, err := leaseholdv1.NewLookupServiceClient(conn).Follow(ctx)
	if err == nil && stream.Send(&leaseholdv1.FollowRequest{Version: wire.Version, Namespace: string(ns), Seq: 1}) == nil {
		_, _ = stream.Recv()
	}
}

// A standby follows a table only while lookups request it, also for made-up names.
func TestStandbyUnfollowsUnusedTables(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		c.create("m1", pool())
		for i := range 100 {
			c.follow(addr("m2"), leasehold.Namespace(fmt.Sprintf("made-up-%d", i)))
		}
		if n := feeds(); n == 0 {
			t.Error("no table is followed: the test is void")
		}
		time.Sleep(5 * time.Minute)
		if n := feeds(); n != 0 {
			t.Errorf("%d tables are still followed without a request", n)
		}
	})
}

// feeds returns the number of streams on which standbys follow leaders.
func feeds() int {
	buf := make([]byte, 16<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), "(*feeds).run(")
}
