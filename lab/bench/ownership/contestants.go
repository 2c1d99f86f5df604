package ownership

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/locks"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// The contestants.
const (
	nameSince        = "time.Since"
	nameCheck        = "leasehold owner.Check"
	nameHeld         = "leasehold owner.Held"
	nameSession      = "etcd Session.Done, local"
	nameLinearizable = "etcd Get, linearizable"
	nameSerializable = "etcd Get, serializable"
)

// checkContestants are a reading of the clock, Check, Held, and the checks with etcd.
func checkContestants(ctx context.Context, o *owner.Owner, dir string, ends *proc.Cleanup) ([]report.Contestant, error) {
	keys := keysOf(o)
	held := make([]owner.Lease, len(keys))
	for i, k := range keys {
		held[i], _ = o.Check(k)
	}
	all := []report.Contestant{
		{Name: nameSince, Run: readClock},
		{Name: nameCheck, Run: func(n int) int {
			sum := 0
			for i := range n {
				if l, ok := o.Check(keys[i%loadgen.Asked]); ok {
					sum += int(l.Generation)
				}
			}
			return sum
		}},
		{Name: nameHeld, Run: func(n int) int {
			sum := 0
			for i := range n {
				if o.Held(held[i%loadgen.Asked]) {
					sum++
				}
			}
			return sum
		}},
	}
	peers, err := etcdContestants(ctx, dir, ends)
	return append(all, peers...), err
}

func readClock(n int) int {
	origin, sum := time.Now(), 0
	for range n {
		sum += int(time.Since(origin))
	}
	return sum
}

// etcdContestants hold a lock with etcd's client library, and check that they still hold it.
func etcdContestants(ctx context.Context, dir string, ends *proc.Cleanup) ([]report.Contestant, error) {
	e, err := locks.StartEtcd(ctx, 1, dir, false)
	if err != nil {
		return nil, err
	}
	ends.Add(e.Close)
	client := e.Conns[0]
	session, err := concurrency.NewSession(client, concurrency.WithTTL(60))
	if err != nil {
		return nil, err
	}
	ends.Add(func() { _ = session.Close() })
	lock := concurrency.NewMutex(session, "/lock")
	if err := lock.Lock(ctx); err != nil {
		return nil, err
	}
	get := func(options ...clientv3.OpOption) func(int) int {
		return func(n int) int {
			sum := 0
			for range n {
				reply, err := client.Get(ctx, lock.Key(), options...)
				if err != nil {
					panic(err)
				}
				sum += len(reply.Kvs)
			}
			return sum
		}
	}
	return []report.Contestant{
		{Name: nameSession, Run: func(n int) int {
			sum := 0
			for range n {
				select {
				case <-session.Done():
				default:
					sum++
				}
			}
			return sum
		}},
		{Name: nameSerializable, Run: get(clientv3.WithSerializable())},
		{Name: nameLinearizable, Run: get()},
	}, nil
}

// Operations on a value of a server's state, on one core and on all, with their peers.
const (
	namePlain     = "map and mutex, add 1"
	nameUpdate    = "leasemap Update, add 1"
	nameGet       = "leasemap Get"
	namePlainAll  = "map and mutex, all cores"
	nameUpdateAll = "leasemap Update, all cores"
)

// mapContestants are a map with a mutex, and a leasemap of an owner.
func mapContestants(ctx context.Context, o *owner.Owner) ([]report.Contestant, error) {
	m, err := leasemap.New(leasemap.Config[int]{}, struct{ owner.Checker }{o}) // no value moves
	if err != nil {
		return nil, err
	}
	names := namesOf(o)
	update := func(first, n int) int {
		sum := 0
		for i := range n {
			v, err := m.Update(ctx, names[(first+i)%len(names)], addOne)
			if err != nil {
				panic(err) // the owner holds all of them
			}
			sum += int(v.Number)
		}
		return sum
	}
	get := func(n int) int {
		sum := 0
		for i := range n {
			v, _, err := m.Get(names[i%len(names)])
			if err != nil {
				panic(err)
			}
			sum += v
		}
		return sum
	}
	plain := plainMap(names)
	return []report.Contestant{
		{Name: namePlain, Run: func(n int) int { return plain(0, n) }},
		{Name: nameUpdate, Run: func(n int) int { return update(0, n) }},
		{Name: nameGet, Run: get},
		{Name: namePlainAll, Run: onAllCores(plain)},
		{Name: nameUpdateAll, Run: onAllCores(update)},
	}, nil
}

func addOne(v *int) error { *v++; return nil }

// plainMap is the lower bound.
func plainMap(names []string) func(first, n int) int {
	var mu sync.Mutex
	values := make(map[string]int)
	return func(first, n int) int {
		sum := 0
		for i := range n {
			mu.Lock()
			values[names[(first+i)%len(names)]]++
			sum++
			mu.Unlock()
		}
		return sum
	}
}

// onAllCores divides the work among all cores, which start at different names.
func onAllCores(work func(first, n int) int) func(int) int {
	return func(n int) int {
		return report.OnAllCores(n, func(core, n int) int { return work(core*loadgen.Asked/4, n) })
	}
}
