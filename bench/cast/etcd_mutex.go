package cast

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// An EtcdMutex acquires as etcd's own library does: each client has a session, and
// locks a mutex for each resource, which nobody else wants.
type EtcdMutex struct {
	*Etcd
	sessions []*concurrency.Session // of each client
	last     string
}

// NewEtcdMutex begins the sessions. They end with the cluster.
func NewEtcdMutex(c *Etcd) (*EtcdMutex, error) {
	e := &EtcdMutex{Etcd: c, sessions: make([]*concurrency.Session, Clients)}
	return e, Each(Clients, func(client int) (err error) {
		e.sessions[client], err = concurrency.NewSession(c.Conn(client), concurrency.WithTTL(etcdTTL))
		return err
	})
}

// Acquire locks n mutexes.
func (e *EtcdMutex) Acquire(ctx context.Context, n int, name string) (Turn, error) {
	e.last = name
	return e.swarm.Run(ctx, n, name, func(ctx context.Context, client int, resource string) error {
		if err := concurrency.NewMutex(e.sessions[client], resource).Lock(ctx); err != nil {
			return fmt.Errorf("etcd: locking %s: %w", resource, err)
		}
		return nil
	})
}

// Release deletes the keys of all mutexes, which unlocks them.
func (e *EtcdMutex) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, OrderLimit)
	defer cancel()
	if _, err := e.Conn(0).Delete(ctx, e.last+"-", clientv3.WithPrefix()); err != nil {
		return fmt.Errorf("etcd: unlocking: %w", err)
	}
	return nil
}
