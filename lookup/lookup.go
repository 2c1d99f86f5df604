package lookup

import (
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

const opOpen = "open lookup"

// A Lookup follows the lease table of one namespace. It is safe for concurrent use. The
// methods that read the table, from Find to Changed, use the last table after Close.
type Lookup struct {
	cfg      Config
	clock    *clock.Clock
	detector *clock.Detector

	current  atomic.Pointer[snapshot] // not nil after Open has returned
	complete atomic.Pointer[complete]
	hints    hints

	outbox   *outbox
	losses   *lossLog
	follower *follower
	metrics  *metrics // nil without Config.Metrics

	ready  chan struct{} // closed after the first table
	failed chan error    // buffers the error of Open

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup
	closing sync.Once
	done    chan struct{} // closed when all goroutines have ended
}

// Open returns a Lookup after it has received the table. The context bounds only
// this wait.
//
// It fails with [leasehold.ErrNotFound] when a manager replies that the
// namespace does not exist, with [leasehold.ErrDenied] when the managers do not permit
// this process to follow it, and with [leasehold.ErrUnavailable] when the context ends
// first. That error contains the last error of each manager.
func Open(ctx context.Context, cfg Config) (*Lookup, error) {
	c := cmp.Or(cfg.Clock, clock.New())
	var seed [32]byte
	_, _ = cryptorand.Read(seed[:]) // never fails
	return open(ctx, cfg, c, clock.NewDetector(c), rand.NewChaCha8(seed))
}

func open(ctx context.Context, cfg Config, c *clock.Clock, d *clock.Detector, random rand.Source) (*Lookup, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := &Lookup{
		cfg: cfg, clock: c, detector: d,
		hints:  hints{maxInterval: cfg.Poll},
		outbox: newOutbox(cfg.KeepLosses),
		losses: newLossLog(cfg.KeepLosses),
		ready:  make(chan struct{}),
		failed: make(chan error, 1),
		done:   make(chan struct{}),
	}
	l.complete.Store(&complete{})
	var err error
	if l.metrics, err = newMetrics(&cfg); err != nil {
		return nil, err
	}
	if l.follower, err = newFollower(l, random); err != nil {
		return nil, err
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.running.Go(func() { l.follower.run(l.ctx) })
	l.running.Go(func() { l.publish(l.ctx) })
	l.running.Go(func() { d.Watch(l.ctx, l.follower.slept) })

	select {
	case <-l.ready:
	case err = <-l.failed:
	case <-ctx.Done():
		err = leasehold.Errorf(opOpen, leasehold.ErrUnavailable, string(cfg.Namespace),
			"no manager sent the table: %s: %w", l.follower.errors, ctx.Err())
	}
	if err != nil {
		_ = l.Close(context.Background()) // never fails without a deadline
		return nil, err
	}
	l.metrics.open(l)
	if cfg.OnLoss != nil || cfg.OnContact != nil {
		start := l.losses.beginning()
		l.running.Go(func() { l.runCallbacks(start) })
	}
	return l, nil
}

// Close ends the Lookup, its iterators over losses and the waiting calls of
// Do. It waits until all goroutines of the Lookup have ended, including a call of OnLoss or OnContact. If
// the context ends first, it returns [leasehold.ErrUnavailable], and the teardown continues.
// It may be called more than once.
func (l *Lookup) Close(ctx context.Context) error {
	l.cancel()
	l.closing.Do(func() {
		go func() {
			l.running.Wait()
			l.metrics.close(l)
			close(l.done)
		}()
	})
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-l.done:
		return nil
	default:
		return leasehold.Errorf("close lookup", leasehold.ErrUnavailable, string(l.cfg.Namespace), "a callback has not returned or a connection is not closed: %w", context.Cause(ctx))
	}
}

// Done returns a channel that is closed when the teardown after Close is complete.
func (l *Lookup) Done() <-chan struct{} { return l.done }

// Err returns nil until Done is closed, and then [leasehold.ErrClosed]: a Lookup ends only by
// Close.
func (l *Lookup) Err() error {
	select {
	case <-l.done:
		return leasehold.Errorf("lookup", leasehold.ErrClosed, string(l.cfg.Namespace), "the lookup is closed")
	default:
		return nil
	}
}

// Find returns the address of the key's owner according to the table. It reports false if
// the key has no owner. It never waits, takes no lock and does not allocate.
//
// An address is a hint: the server checks whether it owns the key, and
// refuses with [leasehold.ErrNotOwner] if not. Then [Lookup.Do] looks the key up again.
func (l *Lookup) Find(key leasehold.Key) (addr string, ok bool) {
	return l.current.Load().find(key)
}

// Namespace returns the namespace of the table.
func (l *Lookup) Namespace() leasehold.Namespace { return l.cfg.Namespace }

// Addrs returns the addresses of all servers that own keys, sorted and without duplicates.
// It takes time linear in their number, independent of the number of ranges.
func (l *Lookup) Addrs() []string { return l.current.Load().servers() }

// A Placement is the entry of the table that contains a key.
type Placement struct {
	// Range is the range of the entry.
	Range leasehold.Range
	// Generation, Owner, Session and Addr are zero if the range has no owner.
	Generation leasehold.Generation
	Owner      leasehold.OwnerID
	Session    leasehold.Session
	Addr       string
	// LSN is the LSN of the table.
	LSN leasehold.LSN
}

// At returns the entry of a key, and reports whether it has an owner. Like
// Find it never waits and does not allocate, but it takes logarithmic time.
func (l *Lookup) At(key leasehold.Key) (Placement, bool) {
	return place(l.current.Load().table, key)
}

func place(t *table.Table, key leasehold.Key) (Placement, bool) {
	r, e := t.At(key)
	p := Placement{Range: r, LSN: t.LSN()}
	if e.Vacant() {
		return p, false
	}
	p.Generation, p.Owner, p.Session, p.Addr = e.Generation, e.Holder.Owner, e.Holder.Session, e.Holder.Addr
	return p, true
}

// LSN returns the LSN of the table. It never decreases.
func (l *Lookup) LSN() leasehold.LSN { return l.current.Load().table.LSN() }

// Age returns the time since the table last contained all committed changes. While a
// manager replies it is at most a poll interval and a round trip. A
// health check may compare it with Config.Stale. After the computer was suspended
// it is at least Config.Stale until a manager has replied, because the duration of the
// suspension is unknown.
func (l *Lookup) Age() time.Duration {
	c, now := l.complete.Load(), l.clock.Now()
	age := max(0, now.Sub(c.at))
	if l.detector.Epoch(now) != c.epoch {
		return max(age, l.cfg.Stale)
	}
	return age
}

// complete is the last time when the table contained all committed changes. It is immutable.
type complete struct {
	at    mono.Instant
	epoch uint64 // of the sleep detector: another epoch invalidates at
}

// Ready reports whether the age of the table is less than Config.Stale. A caller that is
// not ready continues with its table, and should report this in its health check.
func (l *Lookup) Ready() bool { return l.Age() < l.cfg.Stale }

// Silence returns the time without a reply of a manager if it exceeds two polls, and 0
// otherwise. A caller that waits for a change may add it to its error.
func (l *Lookup) Silence() time.Duration {
	if age := l.Age(); age > 2*l.cfg.Poll {
		return age
	}
	return 0
}

// Changed returns a channel that is closed when the table changes. Get the
// channel before reading the table, otherwise a change between the two is
// missed.
func (l *Lookup) Changed() <-chan struct{} { return l.current.Load().superseded }

// Refresh is a hint that the table is stale, because a server in it
// was not the owner or was unreachable. It does not wait. Managers broadcast changes,
// so a hint only helps if a broadcast was lost. Do calls Refresh.
//
// Refresh is rate limited: it causes at most ten requests per second, and while the table
// does not change it backs off to one request per Config.Poll.
func (l *Lookup) Refresh() {
	if l.hints.allow(l.clock.Now(), l.LSN()) {
		l.follower.refresh()
	}
}
