package cast

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// EtcdNewcomers acquire as processes do that have just been started: each connects,
// begins a session, and puts its key, all at the same time.
type EtcdNewcomers struct {
	*Etcd
	mu       sync.Mutex
	sessions []*concurrency.Session
}

// Acquire lets n come, and waits until each has its key.
func (e *EtcdNewcomers) Acquire(ctx context.Context, n int, name string) (Turn, error) {
	limited, cancel := context.WithTimeoutCause(ctx, OrderLimit, fmt.Errorf("a client got no answer in %v", OrderLimit))
	defer cancel()
	before, err := e.CPU()
	if err != nil {
		return Turn{}, err
	}
	before += CPUTime()
	begin := time.Now()
	err = Each(n, func(i int) error {
		conn, err := dialEtcd(ctx, e.leader) // it lives as long as its context, beyond the turn
		if err != nil {
			return err
		}
		return e.come(limited, conn, i, name)
	})
	took := time.Since(begin)
	if err != nil {
		return Turn{}, err
	}
	after, err := e.CPU()
	return Turn{Leases: n, Took: took, CPU: after + CPUTime() - before}, err
}

func (e *EtcdNewcomers) come(ctx context.Context, conn *clientv3.Client, i int, name string) error {
	session, err := concurrency.NewSession(conn, concurrency.WithTTL(etcdTTL))
	if err != nil {
		return errors.Join(fmt.Errorf("etcd: beginning a session: %w", err), conn.Close())
	}
	e.mu.Lock()
	e.sessions = append(e.sessions, session)
	e.mu.Unlock()
	return putIfAbsent(ctx, conn, fmt.Sprintf("%s-%06d", name, i), strconv.Itoa(i), session.Lease())
}

// Release ends the sessions of the last turn, and their connections.
func (e *EtcdNewcomers) Release(context.Context) error {
	sessions := e.sessions
	e.sessions = nil
	return Each(len(sessions), func(i int) error {
		return errors.Join(sessions[i].Close(), sessions[i].Client().Close())
	})
}
