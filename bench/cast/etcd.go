package cast

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcdTTL is longer than any contest: nobody's lease runs out, and nobody has to
// keep it alive, which would cost etcd more.
const etcdTTL = 3600 // seconds

// connections is how many the clients of etcd share, all to the leader. Of 1, 4, 16
// and 256 this took the least CPU per lease; with ZooKeeper a session per client
// did.
const connections = 4

// An Etcd is three members of etcd, each in a process of its own, and the
// connections of their clients.
type Etcd struct {
	members Group
	leader  string
	addrs   []string // of all, for clients
	conns   []*clientv3.Client
	swarm   Swarm
}

// BeginEtcd starts three members, and clients that begin nothing new when a turn
// has lasted for as long as the limit.
func BeginEtcd(ctx context.Context, dir string, fsync bool, limit time.Duration) (*Etcd, error) {
	return BeginEtcdOf(ctx, 3, dir, fsync, limit)
}

// BeginEtcdOf starts as many members as it is told.
func BeginEtcdOf(ctx context.Context, n int, dir string, fsync bool, limit time.Duration) (*Etcd, error) {
	addrs, err := FreePorts(2 * n)
	if err != nil {
		return nil, err
	}
	members, err := BeginGroup(ctx, "etcd-member", n, func(i int) []string {
		return []string{
			"-index", strconv.Itoa(i), "-dir", filepath.Join(dir, etcdName(i)),
			"-peers", strings.Join(addrs[:n], ","), "-client", addrs[n+i], "-fsync=" + strconv.FormatBool(fsync),
		}
	})
	if err != nil {
		return nil, err
	}
	c := &Etcd{members: members, addrs: addrs[n:], swarm: Swarm{members.CPU, limit}}
	if err := c.connect(ctx, addrs[n:]); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// connect connects all clients to the member that leads, as the paper's did.
func (c *Etcd) connect(ctx context.Context, addrs []string) error {
	first, err := dialEtcd(ctx, addrs[0])
	if err != nil {
		return err
	}
	defer func() { _ = first.Close() }()
	for _, addr := range addrs {
		s, err := first.Status(ctx, "http://"+addr)
		if err != nil {
			return fmt.Errorf("asking etcd who leads: %w", err)
		}
		if s.Header.MemberId == s.Leader {
			c.leader = addr
		}
	}
	if c.leader == "" {
		return fmt.Errorf("no etcd member leads")
	}
	for range connections {
		conn, err := dialEtcd(ctx, c.leader)
		if err != nil {
			return err
		}
		c.conns = append(c.conns, conn)
	}
	return nil
}

func dialEtcd(ctx context.Context, addr string) (*clientv3.Client, error) {
	conn, err := clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{"http://" + addr}, DialTimeout: StartLimit, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	return conn, nil
}

// Addr is where the member that leads serves clients.
func (c *Etcd) Addr() string { return c.leader }

// Addrs are where members serve clients.
func (c *Etcd) Addrs() []string { return c.addrs }

// CPU is what all members have used so far.
func (c *Etcd) CPU() (time.Duration, error) { return c.members.CPU() }

// Conn returns the connection of a client.
func (c *Etcd) Conn(client int) *clientv3.Client { return c.conns[client%len(c.conns)] }

// put puts a resource's key if nobody has it, bound to a lease. That is what
// concurrency.Mutex does when nobody else wants the lock, less a read.
func (c *Etcd) put(ctx context.Context, client int, resource string, lease clientv3.LeaseID) error {
	return putIfAbsent(ctx, c.Conn(client), resource, strconv.Itoa(client), lease)
}

func putIfAbsent(ctx context.Context, conn *clientv3.Client, resource, client string, lease clientv3.LeaseID) error {
	r, err := conn.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(resource), "=", 0)).
		Then(clientv3.OpPut(resource, client, clientv3.WithLease(lease))).
		Else(clientv3.OpGet(resource)).
		Commit()
	switch {
	case err != nil:
		return fmt.Errorf("etcd: locking %s: %w", resource, err)
	case !r.Succeeded:
		return fmt.Errorf("etcd: %s is locked already, and should be new", resource)
	}
	return nil
}

func (c *Etcd) grant(ctx context.Context, client int) (clientv3.LeaseID, error) {
	r, err := c.Conn(client).Grant(ctx, etcdTTL)
	if err != nil {
		return 0, fmt.Errorf("etcd: granting a lease: %w", err)
	}
	return r.ID, nil
}

// Close ends all members, and waits for them.
func (c *Etcd) Close() {
	for _, conn := range c.conns {
		_ = conn.Close() // its server ends next
	}
	c.members.Close()
}

// An EtcdPerLock acquires as one does who wants each resource to have a lease of
// its own, as Flease's have: a lease is granted, and then the key is put. Two
// writes of the group's log.
type EtcdPerLock struct {
	*Etcd
	mu     sync.Mutex
	leases []clientv3.LeaseID
}

// Acquire acquires n locks, or as many as there is time for.
func (e *EtcdPerLock) Acquire(ctx context.Context, n int, name string) (Turn, error) {
	return e.swarm.Run(ctx, n, name, func(ctx context.Context, client int, resource string) error {
		lease, err := e.grant(ctx, client)
		if err != nil {
			return err
		}
		e.mu.Lock()
		e.leases = append(e.leases, lease)
		e.mu.Unlock()
		return e.put(ctx, client, resource, lease)
	})
}

// Release revokes the leases of the last turn.
func (e *EtcdPerLock) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, OrderLimit)
	defer cancel()
	leases := e.leases
	e.leases = nil
	return Each(Clients, func(client int) error {
		for i := client; i < len(leases); i += Clients {
			if _, err := e.Conn(client).Revoke(ctx, leases[i]); err != nil {
				return fmt.Errorf("etcd: revoking a lease: %w", err)
			}
		}
		return nil
	})
}

// An EtcdPerClient acquires as one does who has one lease for all that he locks,
// as concurrency.Session has: only the key is put. All of a client's locks live
// and die together, as ZooKeeper's do with a session.
type EtcdPerClient struct {
	*Etcd
	leases []clientv3.LeaseID // of each client
	last   string
}

// NewEtcdPerClient grants each client its lease.
func NewEtcdPerClient(ctx context.Context, c *Etcd) (*EtcdPerClient, error) {
	e := &EtcdPerClient{Etcd: c, leases: make([]clientv3.LeaseID, Clients)}
	return e, Each(Clients, func(client int) (err error) {
		e.leases[client], err = c.grant(ctx, client)
		return err
	})
}

// Acquire acquires n locks, or as many as there is time for.
func (e *EtcdPerClient) Acquire(ctx context.Context, n int, name string) (Turn, error) {
	e.last = name
	return e.swarm.Run(ctx, n, name, func(ctx context.Context, client int, resource string) error {
		return e.put(ctx, client, resource, e.leases[client])
	})
}

// Release deletes the keys of the last turn.
func (e *EtcdPerClient) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, OrderLimit)
	defer cancel()
	if _, err := e.conns[0].Delete(ctx, e.last+"-", clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("etcd: deleting keys: %w", err)
	}
	return nil
}

// Close leaves the cluster to whoever has it.
func (*EtcdPerClient) Close() {}
