package lookup

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

const opOpen = "open lookup"

// A Lookup follows the lease table of one namespace. Its methods may be called
// from many goroutines at once. Those that read the table, from Find to
// Changed, go on answering from the last one after Close.
type Lookup struct {
	cfg      Config
	clock    *clock.Clock
	detector *clock.Detector

	current atomic.Pointer[snapshot] // not nil once Open has returned
	known   atomic.Pointer[known]
	hints   hints

	outbox   *outbox
	losses   *lossLog
	follower *follower
	metrics  *metrics // nil if nobody asks for them

	ready   chan struct{} // closed when there is a table
	refused chan error    // holds why there will never be one

	ctx     context.Context // ends when the Lookup is closed
	cancel  context.CancelFunc
	running sync.WaitGroup
	closing sync.Once
	done    chan struct{} // closed when nothing runs any more
}

// Open follows a table, and returns when it is there. The context bounds only
// that.
//
// It fails with [leasehold.ErrNotFound] as soon as a manager says that there is no
// such namespace, with [leasehold.ErrDenied] as soon as one says that this process may
// not follow it, and with [leasehold.ErrUnavailable] if the context ends first, saying
// what was heard from each manager.
func Open(ctx context.Context, cfg Config) (*Lookup, error) {
	c := clock.New()
	return open(ctx, cfg, c, clock.NewDetector(c))
}

func open(ctx context.Context, cfg Config, c *clock.Clock, d *clock.Detector) (*Lookup, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := &Lookup{
		cfg: cfg, clock: c, detector: d,
		hints:   hints{longest: cfg.Poll},
		outbox:  newOutbox(cfg.KeepLosses),
		losses:  newLossLog(cfg.KeepLosses),
		ready:   make(chan struct{}),
		refused: make(chan error, 1),
		done:    make(chan struct{}),
	}
	l.known.Store(&known{})
	var err error
	if l.metrics, err = newMetrics(&cfg); err != nil {
		return nil, err
	}
	if l.follower, err = newFollower(l); err != nil {
		return nil, err
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.running.Go(func() { l.follower.run(l.ctx) })
	l.running.Go(func() { l.publish(l.ctx) })
	l.running.Go(func() { d.Watch(l.ctx, l.follower.slept) })

	select {
	case <-l.ready:
	case err = <-l.refused:
	case <-ctx.Done():
		err = leasehold.Errorf(opOpen, leasehold.ErrUnavailable, string(cfg.Namespace),
			"no manager sent the table: %s: %w", l.follower.errors, ctx.Err())
	}
	if err != nil {
		_ = l.Close(context.Background()) // it never fails
		return nil, err
	}
	l.metrics.open(l)
	if cfg.OnLoss != nil || cfg.OnContact != nil {
		at := l.losses.beginning()
		l.running.Go(func() { l.callBack(at) })
	}
	return l, nil
}

// Close ends what Open began. Iterators over losses end, and so do waiting calls of
// Do. It waits until nothing of it runs any more, a call of OnLoss or OnContact included. If
// the context ends first, it returns [leasehold.ErrUnavailable]; everything ends all the same.
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
		return leasehold.Errorf("close lookup", leasehold.ErrUnavailable, string(l.cfg.Namespace), "it has not ended yet, because a callback has not returned or a connection is not closed: %w", context.Cause(ctx))
	}
}

// Done returns a channel that is closed when the Lookup has been closed.
func (l *Lookup) Done() <-chan struct{} { return l.done }

// Err returns nil until Done is closed, and then [leasehold.ErrClosed]: a Lookup ends only by
// Close.
func (l *Lookup) Err() error {
	select {
	case <-l.done:
		return leasehold.Errorf("lookup", leasehold.ErrClosed, string(l.cfg.Namespace), "it was closed")
	default:
		return nil
	}
}

// Find returns the address of the server that owns the key, as far as is known
// here. It reports false if nobody does. It never waits, takes no lock and does
// not allocate.
//
// An address is a hint: the server itself knows whether it owns the key, and
// refuses with [leasehold.ErrNotOwner] if not. [Lookup.Do] looks again then.
func (l *Lookup) Find(key leasehold.Key) (addr string, ok bool) {
	return l.current.Load().find(key)
}

// Namespace returns the namespace whose table this is.
func (l *Lookup) Namespace() leasehold.Namespace { return l.cfg.Namespace }

// Addrs returns the addresses of all servers that own keys, sorted, each once.
// It takes time linear in their number, and does not look at the ranges.
func (l *Lookup) Addrs() []string { return l.current.Load().servers() }

// A Placement is all that the table says about a key.
type Placement struct {
	// Range is the keys around this one that share what follows.
	Range leasehold.Range
	// Generation, Owner, Session and Addr are zero if nobody owns the key.
	Generation leasehold.Generation
	Owner      leasehold.OwnerID
	Session    leasehold.Session
	Addr       string
	// LSN is that of the table.
	LSN leasehold.LSN
}

// At returns what the table says about a key, and whether anybody owns it. Like
// Find it never waits and does not allocate, but takes logarithmic time.
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

// LSN returns the number of the last change that is in the table. It never goes
// back.
func (l *Lookup) LSN() leasehold.LSN { return l.current.Load().table.LSN() }

// Age returns how old the table may be: for how long it has not been known to
// be complete. While a manager answers that stays below a poll and a bit; a
// health check may compare it with Config.Stale. After the computer was suspended
// it is at least that, until a manager has answered: for how long the clock
// stood still cannot be told.
func (l *Lookup) Age() time.Duration {
	k, now := l.known.Load(), l.clock.Now()
	age := max(0, now.Sub(k.at))
	if l.detector.Epoch(now) != k.epoch {
		return max(age, l.cfg.Stale)
	}
	return age
}

// known is when the table was last known to be complete. It is immutable.
type known struct {
	at    mono.Instant
	epoch uint64 // of the sleep detector: a sleep makes it worthless
}

// Ready reports whether the table is as good as can be: known to be complete
// not longer than Config.Stale ago. A caller that is not ready goes on with the
// table it has, and does well to say so in its own health check.
func (l *Lookup) Ready() bool { return l.Age() < l.cfg.Stale }

// Silence returns for how long no manager has confirmed the table, if that is longer
// than it takes while one answers: two polls. Then it is worth a word to whoever waits
// for a change. Otherwise it returns 0.
func (l *Lookup) Silence() time.Duration {
	if age := l.Age(); age > 2*l.cfg.Poll {
		return age
	}
	return 0
}

// Changed returns a channel that is closed when the table changes. Get the
// channel first and then look at the table, or a change between the two goes
// unnoticed.
func (l *Lookup) Changed() <-chan struct{} { return l.current.Load().superseded }

// Refresh hints that the table is out of date, because a server that it names
// was not the owner, or not there. It does not wait. Changes arrive without it,
// so that a hint is only of use if one was missed. Do calls it by itself.
//
// It may be called as often as callers like: a manager is asked at most ten times
// a second because of it, and as long as the table does not change less and less
// often, down to once in Config.Poll.
func (l *Lookup) Refresh() {
	if l.hints.take(l.clock.Now(), l.LSN()) {
		l.follower.refresh()
	}
}
