package availability

import (
	"context"
	"math"
	"math/rand/v2"
	"net/rpc"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lookup"
)

// frontends call servers with a lookup, and retry until they are served.
type frontends struct {
	lookups []*lookup.Lookup
	at      place

	mu    sync.Mutex
	conns map[string]*rpc.Client
}

func openFrontends(ctx context.Context, at place, namespace leasehold.Namespace, addrs []string, lookups int) (*frontends, error) {
	f := &frontends{at: at, conns: make(map[string]*rpc.Client)}
	for range lookups {
		l, err := lookup.Open(ctx, lookup.Config{Namespace: namespace, Managers: addrs, Credentials: at.credentials(), DialOptions: at.dialOptions()})
		if err != nil {
			f.close()
			return nil, err
		}
		f.lookups = append(f.lookups, l)
	}
	return f, nil
}

func (f *frontends) close() {
	for _, l := range f.lookups {
		_ = l.Close(context.Background())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		_ = c.Close()
	}
}

// conn returns a server's connection, which all callers share.
func (f *frontends) conn(addr string) (*rpc.Client, error) {
	f.mu.Lock()
	c := f.conns[addr]
	f.mu.Unlock()
	if c != nil {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
	defer cancel()
	socket, err := f.at.dial(ctx, addr) // other callers need not wait for a host that is lost
	if err != nil {
		return nil, leasehold.Errorf("call", leasehold.ErrIndeterminate, addr, "%w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.conns[addr]; c != nil {
		return c, socket.Close()
	}
	c = rpc.NewClient(socket)
	f.conns[addr] = c
	return c, nil
}

// attemptTimeout bounds an attempt: a lost host does not reply.
const attemptTimeout = 500 * time.Millisecond

func (f *frontends) call(key leasehold.Key, addr string) error {
	c, err := f.conn(addr)
	if err != nil {
		return err
	}
	owned, err := loadgen.Owned(c, key, attemptTimeout)
	if err != nil {
		f.mu.Lock()
		if f.conns[addr] == c {
			delete(f.conns, addr)
		}
		f.mu.Unlock()
		return leasehold.Errorf("call", leasehold.ErrIndeterminate, addr, "%w", err)
	}
	if !owned {
		return leasehold.ErrNotOwner
	}
	return nil
}

func (f *frontends) operate(ctx context.Context, i int, key leasehold.Key) error {
	return f.lookups[i%len(f.lookups)].Do(ctx, key, func(_ context.Context, addr string) error { return f.call(key, addr) },
		lookup.WithIdempotent(), lookup.WithAttempts(1000))
}

type operation struct {
	begun time.Time
	took  time.Duration
}

// workers execute operations until the end.
type workers struct {
	halt    context.CancelFunc // starts no new operations
	working sync.WaitGroup

	mu   sync.Mutex
	done []operation
	errs int
}

// work starts n workers that execute operations with a pause of about the given mean between
// them: on random keys, or, with own, each on its own key. An operation has a minute.
func (f *frontends) work(ctx context.Context, n int, pause time.Duration, own bool) *workers {
	enough, halt := context.WithCancel(ctx)
	c := &workers{halt: halt}
	for i := range n {
		mine := keyOf(i, n)
		c.working.Go(func() {
			for proc.Pause(enough, rand.N(2*pause)) == nil {
				key := mine
				if !own {
					key = leasehold.Key(rand.Uint64())
				}
				c.execute(ctx, func(ctx context.Context) error { return f.operate(ctx, i, key) })
			}
		})
	}
	return c
}

// keyOf returns one of n keys at equal distances.
func keyOf(i, n int) leasehold.Key { return leasehold.Key(uint64(i) * (math.MaxUint64/uint64(n) + 1)) }

func (c *workers) execute(ctx context.Context, operate func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begun := time.Now()
	err := operate(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.errs++
		return
	}
	c.done = append(c.done, operation{begun, time.Since(begun)})
}

// end waits until all operations in progress are served, and returns the operations and the
// number of errors. Canceling them would omit the longest ones.
func (c *workers) end() ([]operation, int) {
	c.halt()
	c.working.Wait()
	return c.done, c.errs
}

// worst returns the longest operation that ended after a time.
func worst(all []operation, after time.Time) time.Duration {
	longest := time.Duration(0)
	for _, o := range all {
		if o.begun.Add(o.took).After(after) {
			longest = max(longest, o.took)
		}
	}
	return longest
}
