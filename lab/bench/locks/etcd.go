package locks

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
)

// etcdTTL is longer than any contest: no lease expires or has to be kept alive.
const etcdTTL = 3600 // seconds

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

// etcdPerClient uses one lease per client for all its locks, as concurrency.Session does.
type etcdPerClient struct {
	*Etcd
	limit  time.Duration
	leases []clientv3.LeaseID // of each client
	last   string
}

// PerClient returns a service that only puts keys, under the lease of the client.
func (e *Etcd) PerClient(ctx context.Context, limit time.Duration) (Service, error) {
	s := &etcdPerClient{Etcd: e, limit: limit, leases: make([]clientv3.LeaseID, Clients)}
	return s, proc.Each(Clients, func(client int) error {
		lease, err := e.conn(client).Grant(ctx, etcdTTL)
		if err != nil {
			return fmt.Errorf("etcd: granting a lease: %w", err)
		}
		s.leases[client] = lease.ID
		return nil
	})
}

func (e *etcdPerClient) Acquire(ctx context.Context, n int, name string) (Turn, error) {
	e.last = name
	return Swarm{e.CPU, e.limit}.Run(ctx, n, name, func(ctx context.Context, client int, resource string) error {
		return put(ctx, e.conn(client), resource, client, e.leases[client])
	})
}

func (e *etcdPerClient) Release(ctx context.Context) error {
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
