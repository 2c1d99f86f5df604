package manager_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/partition"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// A cluster is managers, owners and lookups in one process, on virtual time and a network in memory. All other
// parts are real.
type cluster struct {
	t    *testing.T
	disk *mem.Disk
	wrap func(store.Store) store.Store // wraps the store of each manager; nil: not wrapped

	policy func(leasehold.Namespace, string) partition.Policy // of the managers; nil: as configured
	logs   slog.Handler                                       // of the managers; nil: nowhere
	peers  *peers                                             // of a diskless group; nil otherwise
	guard  *guard                                             // with access control; nil otherwise
	boot   func() (string, time.Duration)                     // of the machine on which all managers run
	wall   func() time.Time                                   // the managers' wall clock; nil: virtual time
	waves  bool                                               // broadcast in waves even to few lookups

	mu       sync.Mutex
	at       map[string]*bufconn.Listener
	managers map[string]*running
	admins   map[string]leaseholdv1.AdminServiceClient
}

type running struct {
	*manager.Manager
	store *mem.Store
	down  *atomic.Bool // its store does not reply
}

// A muteStore does not reply while it is down.
type muteStore struct {
	store.Store
	down atomic.Bool
}

var errMute = errors.New("the store does not answer")

func (s *muteStore) Record(ctx context.Context, fresh bool) (storage.Record, error) {
	if s.down.Load() {
		return storage.Record{}, errMute
	}
	return s.Store.Record(ctx, fresh)
}

func (s *muteStore) Swap(ctx context.Context, prev storage.Version, next storage.Record) (storage.Version, storage.Outcome, error) {
	if s.down.Load() {
		return 0, storage.Unknown, errMute
	}
	return s.Store.Swap(ctx, prev, next)
}

// inBubble runs a test on virtual time, with a new cluster.
func inBubble(t *testing.T, test func(t *testing.T, c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{
			t: t, disk: mem.NewDisk(), at: map[string]*bufconn.Listener{}, managers: map[string]*running{},
			admins: map[string]leaseholdv1.AdminServiceClient{}, boot: boot(),
		}
		t.Cleanup(func() {
			for name := range c.managers {
				c.stop(name)
			}
		})
		test(t, c)
	})
}

// boot returns the boot of a machine whose uptime follows virtual time.
func boot() func() (string, time.Duration) {
	started := time.Now().Add(-time.Hour)
	return func() (string, time.Duration) { return "virtual", time.Since(started) }
}

// addr returns the address of a manager.
func addr(name string) string { return name + ":7400" }

// start starts a manager, and waits until its goroutines are idle.
func (c *cluster) start(name string) *manager.Manager {
	c.t.Helper()
	listener := bufconn.Listen(1 << 20)
	c.mu.Lock()
	c.at[addr(name)] = listener
	c.mu.Unlock()
	s := c.disk.Open()
	mute := &muteStore{Store: s}
	var seen store.Store = mute
	if c.wrap != nil {
		seen = c.wrap(mute)
	}
	logs := c.logs
	if logs == nil {
		logs = slog.DiscardHandler
	}
	cfg := manager.Config{
		Store: seen, StoreName: "memory", Listener: listener, Advertise: addr(name), Policy: c.policy,
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(c.dial)},
		Logger:      slog.New(logs),
		Boot:        c.boot,
	}
	if c.wall != nil {
		manager.SetWallClock(&cfg, c.wall)
	}
	if c.waves {
		manager.BroadcastInWaves(&cfg)
	}
	if c.peers != nil {
		cfg.Store, cfg.Peers = nil, c.peers.config(name)
	}
	if c.guard != nil {
		c.guard.post(name, &cfg)
	}
	m, err := manager.Start(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.managers[name] = &running{m, s, &mute.down}
	synctest.Wait()
	return m
}

// stop closes a manager.
func (c *cluster) stop(name string) {
	c.t.Helper()
	m := c.managers[name]
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := m.Close(ctx); err != nil {
		c.t.Errorf("closing %s: %v", name, err)
	}
	c.forget(name)
}

// crash ends a manager without a handover.
func (c *cluster) crash(name string) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m, led := c.managers[name], c.status(name).GetLeader() == addr(name)
	_ = m.store.Close() // from here on its writes fail
	if c.peers != nil {
		c.peers.cut(name)
	}
	if err := m.Close(ctx); err == nil && led { // a standby has nothing to hand over
		c.t.Errorf("%s handed over instead of crashing", name)
	}
	c.forget(name)
}

func (c *cluster) forget(name string) {
	c.mu.Lock()
	delete(c.at, addr(name))
	c.mu.Unlock()
	delete(c.managers, name)
	delete(c.admins, name) // the next dial reaches its successor
}

func (c *cluster) dial(ctx context.Context, addr string) (net.Conn, error) {
	c.mu.Lock()
	l := c.at[addr]
	c.mu.Unlock()
	if l == nil {
		return nil, errors.New("connection refused by " + addr)
	}
	return l.DialContext(ctx)
}

func (c *cluster) dialOptions() []grpc.DialOption {
	if c.guard != nil {
		return c.as("spiffe://d/operator/ann")
	}
	return []grpc.DialOption{grpc.WithContextDialer(c.dial), grpc.WithTransportCredentials(insecure.NewCredentials())}
}

// admin returns a client of one manager.
func (c *cluster) admin(name string) leaseholdv1.AdminServiceClient {
	c.t.Helper()
	if client := c.admins[name]; client != nil {
		return client
	}
	conn, err := grpc.NewClient("passthrough:///"+addr(name), append(wire.DialOptions(), c.dialOptions()...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	c.admins[name] = leaseholdv1.NewAdminServiceClient(conn)
	return c.admins[name]
}

// create creates a namespace.
func (c *cluster) create(name string, config *leaseholdv1.NamespaceConfig) {
	c.t.Helper()
	_, err := c.admin(name).CreateNamespace(c.t.Context(), &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: config})
	if err != nil {
		c.t.Fatal(wire.ToError(err))
	}
}

// status returns the status of one manager.
func (c *cluster) status(name string) *leaseholdv1.GetStatusResponse {
	c.t.Helper()
	s, err := c.admin(name).GetStatus(c.t.Context(), &leaseholdv1.GetStatusRequest{Version: wire.Version})
	if err != nil {
		c.t.Fatal(wire.ToError(err))
	}
	return s
}

func (c *cluster) names() []string {
	var all []string
	for i := 1; i <= 5; i++ {
		all = append(all, addr(fmt.Sprintf("m%d", i)))
	}
	return all
}

// join adds an owner of the namespace "pool".
func (c *cluster) join(name string) *owner.Owner {
	c.t.Helper()
	o, err := owner.Join(c.t.Context(), c.ownerConfig(name))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { c.leave(o) })
	return o
}

func (c *cluster) ownerConfig(name string) owner.Config {
	return owner.Config{
		Namespace: "pool", Managers: c.names(), Name: leasehold.OwnerID(name), Addr: name + ":80",
		Credentials: insecure.NewCredentials(), DialOptions: c.dialOptions(),
	}
}

// leave closes an owner, with or without a manager.
func (c *cluster) leave(o *owner.Owner) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = o.Close(ctx)
}

// open adds a lookup of the namespace "pool".
func (c *cluster) open(managers ...string) *lookup.Lookup {
	c.t.Helper()
	if managers == nil {
		managers = c.names()
	}
	l, err := lookup.Open(c.t.Context(), lookup.Config{Namespace: "pool", Managers: managers, Credentials: insecure.NewCredentials(), DialOptions: c.dialOptions()})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

// eventually waits, on virtual time, until a condition holds.
func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	eventuallyEvery(t, 10*time.Millisecond, within, what, holds)
}

func eventuallyEvery(t *testing.T, every, within time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !holds(); time.Sleep(every) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout after %v: %s", within, what)
		}
	}
}

// complete reports whether the owners hold the whole key space together.
func complete(owners ...*owner.Owner) bool {
	share := 0.0
	for _, o := range owners {
		for _, l := range o.Leases() {
			share += float64(l.Range.Last()-l.Range.Start) + 1
		}
	}
	return share > (1<<64)*0.9999999
}
