package locks

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	process "github.com/leasehold-dev/leasehold/server/proc"
)

// Roles returns the roles of the servers, for [proc.Play].
func Roles() map[string]proc.Role {
	return map[string]proc.Role{roleEtcd: proc.RoleOf(startEtcd), roleZooKeeper: proc.RoleOf(startZooKeeper)}
}

const (
	roleEtcd      = "etcd-member"
	roleZooKeeper = "zookeeper-member"
)

// etcdTTL is longer than any contest: no lease expires or has to be kept alive.
const etcdTTL = 3600 // seconds

// connections is the number of shared connections of etcd's clients, all to the leader. Of 1, 4,
// 16 and 256 this took the least CPU per lease; with ZooKeeper it was a session per client.
const connections = 4

// An Etcd is the members of a cluster, each in a process, and the connections of their clients,
// all to the leader, as in the Flease paper.
type Etcd struct {
	Addrs  []string // of all members, for clients
	Leader string
	Conns  []*clientv3.Client

	members proc.Group
}

// StartEtcd starts n members.
func StartEtcd(ctx context.Context, n int, dir string, fsync bool) (*Etcd, error) {
	addrs, err := process.FreePorts(2 * n)
	if err != nil {
		return nil, err
	}
	members, err := proc.StartGroup(ctx, roleEtcd, n, func(i int) any {
		return etcdConfig{Index: i, Dir: filepath.Join(dir, etcdName(i)), Peers: addrs[:n], Client: addrs[n+i], Fsync: fsync}
	})
	if err != nil {
		return nil, err
	}
	e := &Etcd{members: members, Addrs: addrs[n:]}
	if err := e.connect(ctx); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func (e *Etcd) connect(ctx context.Context) error {
	first, err := dialEtcd(ctx, e.Addrs[0])
	if err != nil {
		return err
	}
	defer func() { _ = first.Close() }()
	for _, addr := range e.Addrs {
		s, err := first.Status(ctx, "http://"+addr)
		if err != nil {
			return fmt.Errorf("the leader of etcd: %w", err)
		}
		if s.Header.MemberId == s.Leader {
			e.Leader = addr
		}
	}
	if e.Leader == "" {
		return errors.New("no etcd member leads")
	}
	for range connections {
		conn, err := dialEtcd(ctx, e.Leader)
		if err != nil {
			return err
		}
		e.Conns = append(e.Conns, conn)
	}
	return nil
}

func dialEtcd(ctx context.Context, addr string) (*clientv3.Client, error) {
	conn, err := clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{"http://" + addr}, DialTimeout: proc.StartLimit, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	return conn, nil
}

// CPU returns the CPU time of all members.
func (e *Etcd) CPU() (time.Duration, error) { return e.members.CPU() }

func (e *Etcd) conn(client int) *clientv3.Client { return e.Conns[client%len(e.Conns)] }

// Close ends all members.
func (e *Etcd) Close() {
	for _, conn := range e.Conns {
		_ = conn.Close() // its server ends next
	}
	e.members.Close()
}

// put puts the key of a resource if it is absent, bound to a lease. An uncontended
// concurrency.Mutex does the same and a read.
func put(ctx context.Context, conn *clientv3.Client, resource string, client int, lease clientv3.LeaseID) error {
	r, err := conn.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(resource), "=", 0)).
		Then(clientv3.OpPut(resource, strconv.Itoa(client), clientv3.WithLease(lease))).
		Else(clientv3.OpGet(resource)).
		Commit()
	switch {
	case err != nil:
		return fmt.Errorf("etcd: locking %s: %w", resource, err)
	case !r.Succeeded:
		return fmt.Errorf("etcd: %s is locked already", resource)
	}
	return nil
}

// etcdPerLock uses one lease per resource, like Flease: it grants a lease and puts the key, two
// writes of the log.
type etcdPerLock struct {
	*Etcd
	limit  time.Duration
	mu     sync.Mutex
	leases []clientv3.LeaseID
}

// PerLock returns a service that grants a lease for each lock.
func (e *Etcd) PerLock(limit time.Duration) Service { return &etcdPerLock{Etcd: e, limit: limit} }

func (e *etcdPerLock) Acquire(ctx context.Context, n int, name string) (Turn, error) {
	return Swarm{e.CPU, e.limit}.Run(ctx, n, name, func(ctx context.Context, client int, resource string) error {
		lease, err := e.conn(client).Grant(ctx, etcdTTL)
		if err != nil {
			return fmt.Errorf("etcd: granting a lease: %w", err)
		}
		e.mu.Lock()
		e.leases = append(e.leases, lease.ID)
		e.mu.Unlock()
		return put(ctx, e.conn(client), resource, client, lease.ID)
	})
}

func (e *etcdPerLock) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	leases := e.leases
	e.leases = nil
	return proc.Each(Clients, func(client int) error {
		for i := client; i < len(leases); i += Clients {
			if _, err := e.conn(client).Revoke(ctx, leases[i]); err != nil {
				return fmt.Errorf("etcd: revoking a lease: %w", err)
			}
		}
		return nil
	})
}

// etcdSessions uses one lease per client for all its locks, like ZooKeeper's sessions.
type etcdSessions struct {
	*Etcd
	limit    time.Duration
	sessions []*concurrency.Session // of each client
	lock     lock
	last     string
}

type lock func(ctx context.Context, s *concurrency.Session, client int, resource string) error

// newSessions starts a session for each client. They end with the cluster.
func (e *Etcd) newSessions(limit time.Duration, lock lock) (Service, error) {
	s := &etcdSessions{Etcd: e, limit: limit, sessions: make([]*concurrency.Session, Clients), lock: lock}
	return s, proc.Each(Clients, func(client int) (err error) {
		s.sessions[client], err = concurrency.NewSession(e.conn(client), concurrency.WithTTL(etcdTTL))
		return err
	})
}

// PerClient returns a service that only puts keys, under the lease of the client.
func (e *Etcd) PerClient(limit time.Duration) (Service, error) {
	return e.newSessions(limit, func(ctx context.Context, s *concurrency.Session, client int, resource string) error {
		return put(ctx, s.Client(), resource, client, s.Lease())
	})
}

// Mutex returns a service that locks a mutex of etcd's library for each resource.
func (e *Etcd) Mutex(limit time.Duration) (Service, error) {
	return e.newSessions(limit, func(ctx context.Context, s *concurrency.Session, _ int, resource string) error {
		if err := concurrency.NewMutex(s, resource).Lock(ctx); err != nil {
			return fmt.Errorf("etcd: locking %s: %w", resource, err)
		}
		return nil
	})
}

func (e *etcdSessions) Acquire(ctx context.Context, n int, name string) (Turn, error) {
	e.last = name
	return Swarm{e.CPU, e.limit}.Run(ctx, n, name, func(ctx context.Context, client int, resource string) error {
		return e.lock(ctx, e.sessions[client], client, resource)
	})
}

func (e *etcdSessions) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if _, err := e.conn(0).Delete(ctx, e.last+"-", clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("etcd: deleting keys: %w", err)
	}
	return nil
}

// etcdNewcomers are clients that are started at the same time: each connects, starts a session,
// and puts its key.
type etcdNewcomers struct {
	*Etcd
	mu       sync.Mutex
	sessions []*concurrency.Session
}

// Newcomers returns a service whose clients connect first.
func (e *Etcd) Newcomers() Service { return &etcdNewcomers{Etcd: e} }

func (e *etcdNewcomers) Acquire(ctx context.Context, n int, name string) (Turn, error) {
	limited, cancel := context.WithTimeoutCause(ctx, answerLimit, fmt.Errorf("no reply for a client in %v", answerLimit))
	defer cancel()
	return Measure(e.CPU, func() (int, error) {
		return n, proc.Each(n, func(i int) error {
			conn, err := dialEtcd(ctx, e.Leader) // lives beyond the turn
			if err != nil {
				return err
			}
			return e.join(limited, conn, i, Resource(name, i))
		})
	})
}

func (e *etcdNewcomers) join(ctx context.Context, conn *clientv3.Client, i int, resource string) error {
	session, err := concurrency.NewSession(conn, concurrency.WithTTL(etcdTTL))
	if err != nil {
		return errors.Join(fmt.Errorf("etcd: beginning a session: %w", err), conn.Close())
	}
	e.mu.Lock()
	e.sessions = append(e.sessions, session)
	e.mu.Unlock()
	return put(ctx, conn, resource, i, session.Lease())
}

func (e *etcdNewcomers) Release(context.Context) error {
	sessions := e.sessions
	e.sessions = nil
	return proc.Each(len(sessions), func(i int) error {
		return errors.Join(sessions[i].Close(), sessions[i].Client().Close())
	})
}

type etcdConfig struct {
	Index  int      // of this member
	Dir    string   // for its data
	Peers  []string // addresses of all members for each other, in order
	Client string   // its address for clients
	Fsync  bool     // sync the disk before answering
}

// An EtcdMember is one member of an etcd cluster.
type EtcdMember struct{ server *embed.Etcd }

// startEtcd starts a member, and waits until it serves clients, which requires a quorum.
func startEtcd(ctx context.Context, c etcdConfig) (*EtcdMember, error) {
	cfg, err := c.embed()
	if err != nil {
		return nil, err
	}
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("starting etcd: %w", err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return &EtcdMember{server}, nil
	case err = <-server.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	server.Close()
	return nil, fmt.Errorf("starting etcd: %w", err)
}

// embed returns etcd's default configuration, except for addresses, the directory, the log
// level, a quota that a long benchmark does not reach, and an election timeout for busy machines.
func (c etcdConfig) embed() (*embed.Config, error) {
	if c.Index < 0 || c.Index >= len(c.Peers) {
		return nil, fmt.Errorf("member %d of %d", c.Index, len(c.Peers))
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = etcdName(c.Index), c.Dir
	cfg.LogLevel = "panic" // it logs its shutdown as an error
	cfg.QuotaBackendBytes = 8 << 30
	cfg.UnsafeNoFsync = !c.Fsync
	cfg.TickMs, cfg.ElectionMs = 100, 3_000
	var cluster []string
	for i, addr := range c.Peers {
		cluster = append(cluster, etcdName(i)+"=http://"+addr)
	}
	cfg.InitialCluster = strings.Join(cluster, ",")
	peer := []url.URL{{Scheme: "http", Host: c.Peers[c.Index]}}
	client := []url.URL{{Scheme: "http", Host: c.Client}}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = peer, peer
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = client, client
	return cfg, nil
}

func etcdName(index int) string { return fmt.Sprintf("etcd-%d", index+1) }

// Close stops the member at once. A graceful stop would try to transfer the leadership, for
// eleven seconds if all members end at the same time.
func (m *EtcdMember) Close() error {
	m.server.Server.HardStop()
	return nil
}
