package leaseholdtest

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/internal/testkit/memnet"
	"github.com/leasehold-dev/leasehold/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store/mem"
)

type running struct {
	*manager.Manager
	host  *memnet.Host
	store *mem.Store
}

const managerPort = 7400

func managerName(i int) string       { return fmt.Sprintf("m%d", i+1) }
func managerAddr(name string) string { return fmt.Sprintf("%s:%d", name, managerPort) }
func nameOfManager(addr string) string {
	return strings.TrimSuffix(addr, fmt.Sprintf(":%d", managerPort))
}

func (c *Cluster) isManager(name string) bool {
	return slices.Contains(c.Managers(), managerAddr(name))
}

// StartManager starts a manager that was killed, m1 for instance.
func (c *Cluster) StartManager(name string) {
	c.t.Helper()
	if !c.isManager(name) || c.managers[name] != nil {
		c.t.Fatalf("manager %q cannot be started: it is running, or not one of %v", name, c.Managers())
	}
	host := c.net.Host(name)
	listener, err := host.Listen(managerPort)
	if err != nil {
		c.t.Fatal(err)
	}
	store := c.disk.Open()
	cfg := manager.Config{
		Store: store, StoreName: "memory", Listener: listener, Advertise: managerAddr(name),
		DialOptions: dialer(host), Logger: c.cfg.Logger.With("manager", name),
		Boot: c.boot,
	}
	if c.cfg.Metrics != nil {
		cfg.Metrics = c.cfg.Metrics(name)
	}
	var m *manager.Manager
	labelled(name, func() { m, err = manager.Start(cfg) })
	if err != nil {
		c.t.Fatal(err)
	}
	c.managers[name] = &running{m, host, store}
}

// boot returns the boot ID and uptime of the machine of all managers. The uptime follows virtual
// time, so that managers can measure an outage of all managers, as on a real machine.
func (c *Cluster) boot() (name string, uptime time.Duration) {
	return "leaseholdtest", time.Since(c.started)
}

// KillManager ends a manager as kill -9 does. Its stored data stays.
func (c *Cluster) KillManager(name string) {
	c.t.Helper()
	m := c.managers[name]
	if m == nil {
		c.t.Fatalf("%q is not a running manager", name)
	}
	m.host.Kill()
	_ = m.store.Close() // rejects all further writes
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.Close(ended)
	delete(c.managers, name)
}

// KillLeader kills the leader, and returns its name.
func (c *Cluster) KillLeader() string {
	c.t.Helper()
	name := nameOfManager(c.status().GetLeader())
	c.KillManager(name)
	return name
}

func (c *Cluster) stopManager(name string) {
	ctx, cancel := c.context()
	defer cancel()
	m := c.managers[name]
	if err := m.Close(ctx); err != nil {
		c.t.Errorf("closing manager %s: %v", name, err)
	}
	_ = m.store.Close()
	m.host.Kill()
	delete(c.managers, name)
}

// Move moves a range to a node ([leasehold.All] is the whole key space), and returns when
// the move is complete. The policy may move it again, as in production: "even" does not. Without a Mover at both
// nodes the state is lost, as in production. Move waits for a paused node, and
// retries a move that fails.
func (c *Cluster) Move(r leasehold.Range, to string) {
	c.t.Helper()
	ordered := false
	before := c.namespaceStatus().GetLsn()
	var err error
	for deadline := time.Now().Add(c.timeout()); time.Now().Before(deadline); c.Advance(c.cfg.Lease / 200) {
		if !ordered {
			err = c.orderMove(r, to)
			ordered = err == nil
		}
		switch {
		case ordered && c.namespaceStatus().GetMoves() > 0:
		case ordered && (c.holds(to, r) || c.wasGranted(to, r.Start, before) && c.wasGranted(to, r.Last(), before)):
			return
		case err != nil && leasehold.KindOf(err) != leasehold.ErrNotFound:
			c.t.Fatalf("moving %v to %s: %v", r, to, err)
		default:
			ordered = false
		}
	}
	c.t.Fatalf("%v is not at %s after %v: %v", r, to, c.timeout(), err)
}

func (c *Cluster) orderMove(r leasehold.Range, to string) error {
	_, err := request(c, leaseholdv1.AdminServiceClient.MoveRange, &leaseholdv1.MoveRangeRequest{
		Version: wire.Version, Namespace: string(c.namespace), Owner: to,
		Start: uint64(r.Start), Limit: uint64(r.Limit), LoseState: true,
	})
	return err
}

// wasGranted reports whether a key was granted or moved to a node after an LSN, even if another node holds it now.
func (c *Cluster) wasGranted(node string, key leasehold.Key, after uint64) bool {
	past, err := request(c, leaseholdv1.AdminServiceClient.ListHistory,
		&leaseholdv1.ListHistoryRequest{Version: wire.Version, Namespace: string(c.namespace), Key: uint64(key)})
	return err == nil && slices.ContainsFunc(past.GetEntries(), func(e *leaseholdv1.HistoryEntry) bool {
		return e.GetLsn() > after && e.GetKind() != leaseholdv1.ChangeKind_CHANGE_KIND_VACATED && e.GetHolder().GetOwner() == node
	})
}

// holds reports whether a node holds all leases of a range.
func (c *Cluster) holds(node string, r leasehold.Range) bool {
	for next := r.Start; ; {
		held, err := c.lookup(next)
		if err != nil || held.GetOwner() != node {
			return false
		}
		limit := leasehold.Key(held.GetLease().GetLimit()) // 0 is the end of the key space
		if limit-1 >= r.Last() {
			return true
		}
		next = limit
	}
}

func (c *Cluster) createNamespace() {
	c.t.Helper()
	config := &leaseholdv1.NamespaceConfig{
		Name: string(c.namespace), Policy: c.cfg.Policy, Timing: &leaseholdv1.Timing{Lease: int64(c.cfg.Lease)},
	}
	_, err := request(c, leaseholdv1.AdminServiceClient.CreateNamespace, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: config})
	if err != nil {
		c.t.Fatalf("creating the namespace: %v", err)
	}
}

func (c *Cluster) status() *leaseholdv1.GetStatusResponse {
	c.t.Helper()
	getStatus := func(a leaseholdv1.AdminServiceClient, ctx context.Context, r *leaseholdv1.GetStatusRequest, _ ...grpc.CallOption) (*leaseholdv1.GetStatusResponse, error) {
		s, err := a.GetStatus(ctx, r)
		if err == nil && s.GetProblem() != "" {
			return nil, leasehold.Errorf("status", leasehold.ErrUnavailable, s.GetManager(), "%s", s.GetProblem())
		}
		return s, err
	}
	s, err := request(c, getStatus, &leaseholdv1.GetStatusRequest{Version: wire.Version})
	if err != nil {
		c.t.Fatalf("no manager returns the status of the cluster: %v", err)
	}
	return s
}

func (c *Cluster) namespaceStatus() *leaseholdv1.NamespaceStatus {
	c.t.Helper()
	for _, n := range c.status().GetNamespaces() {
		if n.GetName() == string(c.namespace) {
			return n
		}
	}
	return nil
}

func (c *Cluster) lookup(key leasehold.Key) (*leaseholdv1.HeldRange, error) {
	r, err := request(c, leaseholdv1.AdminServiceClient.LookupKey,
		&leaseholdv1.LookupKeyRequest{Version: wire.Version, Namespace: string(c.namespace), Key: uint64(key)})
	return r.GetRange(), err
}

// leasesOf returns the number of a node's leases according to the managers.
func (c *Cluster) leasesOf(node string) uint32 {
	c.t.Helper()
	answer, err := request(c, leaseholdv1.AdminServiceClient.ListOwners,
		&leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: string(c.namespace)})
	if err != nil {
		c.t.Fatalf("listing the owners: %v", err)
	}
	for _, o := range answer.GetOwners() {
		if o.GetHolder().GetOwner() == node {
			return o.GetLeases()
		}
	}
	return 0
}

// request sends an admin request to the running managers, one after the other, and retries until one replies, for
// as long as an election may take.
func request[Q, R any](c *Cluster, call func(leaseholdv1.AdminServiceClient, context.Context, Q, ...grpc.CallOption) (R, error), in Q) (R, error) {
	var last R
	var err error
	for deadline := time.Now().Add(c.timeout()); time.Now().Before(deadline); c.Advance(100 * time.Millisecond) {
		if len(c.managers) == 0 {
			return last, leasehold.Errorf("request", leasehold.ErrUnavailable, "", "all managers were killed: start one")
		}
		for _, name := range slices.Sorted(maps.Keys(c.managers)) {
			ctx, cancel := c.context()
			last, err = call(c.admin(name), ctx, in)
			cancel()
			err = wire.ToError(err)
			if kind := leasehold.KindOf(err); kind != leasehold.ErrUnavailable && kind != leasehold.ErrNotLeader {
				return last, err
			}
		}
	}
	return last, err
}

func (c *Cluster) admin(name string) leaseholdv1.AdminServiceClient {
	if a := c.admins[name]; a != nil {
		return a
	}
	options := append(wire.DialOptions(), dialer(c.net.Host(operator))...)
	conn, err := grpc.NewClient("passthrough:///"+managerAddr(name), options...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.closers = append(c.closers, func() { _ = conn.Close() })
	c.admins[name] = leaseholdv1.NewAdminServiceClient(conn)
	return c.admins[name]
}

func dialer(h *memnet.Host) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return h.Dial(ctx, addr) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	}
}
