package flease

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	mrand "math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/fleasenet"
)

// A Node is this process's member of the group. All its methods are safe for concurrent
// use.
type Node struct {
	cfg  Config
	time timepiece
	net  fleasenet.Net
	log  journal
	life lifecycle

	// mu guards everything below, and the sending side of net.
	mu       sync.Mutex
	machine  *machine.Machine
	timer    timer
	sleeps   uint64            // suspends that the machine has processed
	source   *fleasenet.Source // of the current packet; nil without one
	requests requests
	watches  map[string][]chan struct{}
	roster   roster
	counts   Counts
	clock    ClockStatus
	deferred deferredWork
}

// A lifecycle is the state of a node: started, ready, done, closed.
type lifecycle struct {
	ready    context.Context // cancelled when the node starts to take part
	setReady context.CancelFunc
	done     context.Context // cancelled when it ceases to, with the reason as its cause
	end      context.CancelCauseFunc

	closing  bool          // Close was called; guarded by the node's lock
	closed   chan struct{} // closed when Close has finished
	closeErr error         // its result; immutable after closed

	stop    context.CancelFunc // of the goroutines
	running sync.WaitGroup
}

// start starts a lifecycle, and returns the context of its goroutines.
func (l *lifecycle) start() (ctx context.Context) {
	l.ready, l.setReady = context.WithCancel(context.Background())
	l.done, l.end = context.WithCancelCause(context.Background())
	l.closed = make(chan struct{})
	ctx, l.stop = context.WithCancel(context.Background())
	return ctx
}

// A timer is the next wake time of the machine.
type timer struct {
	at    mono.Instant
	rearm chan struct{} // signals that at is earlier now
}

// requests are the calls of this process and their leases.
type requests struct {
	entries []*entry // unordered
	pending []*batch // can start more claims
	spare   []*batch // the reused array of pending
	batches uint64   // counts all batches
}

// Start starts a member. It takes part after a delay: see [Node.Ready]. Calls before
// that wait.
func Start(cfg Config) (*Node, error) { return start(cfg, newSystemTime(cfg.Clock)) }

func start(cfg Config, t timepiece) (*Node, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, time: t, log: newJournal(&cfg), roster: newRoster(&cfg),
		timer: timer{rearm: make(chan struct{}, 1)}, watches: make(map[string][]chan struct{}),
	}
	config := cfg.machine()
	config.Incarnation, config.Rand = newIncarnation()
	config.Fresh = func(uint64) uint64 { another, _ := newIncarnation(); return another }
	if _, err := machine.New(machine.Time{}, config); err != nil {
		return nil, err // before a socket is opened
	}
	failpoint.Here("flease/before-opening")
	n.mu.Lock() // packets may arrive before the machine exists
	defer n.mu.Unlock()
	var err error
	if n.net, err = cfg.Transport.open(n.network(config.Incarnation)); err != nil {
		return nil, err
	}
	// The address is bound, so a former process of this member has ended. The wait starts
	// here: until now that process may have made promises.
	now, sleeps := t.read()
	n.sleeps = sleeps
	if n.machine, err = machine.New(now, config); err != nil {
		return nil, err
	}
	ctx := n.life.start()
	n.life.running.Go(func() { n.runTimer(ctx) })
	n.life.running.Go(func() { t.watch(ctx, func() { n.step(func(machine.Time) {}) }) })
	return n, nil
}

// newIncarnation returns a random incarnation, unique among all starts of all
// members, and a generator for jitter.
func newIncarnation() (uint64, *mrand.Rand) {
	var seed [24]byte
	_, _ = rand.Read(seed[:]) // never fails
	part := func(i int) uint64 { return binary.LittleEndian.Uint64(seed[8*i:]) }
	return max(1, part(0)), mrand.New(mrand.NewPCG(part(1), part(2))) //nolint:gosec // for backoffs; the incarnation is from crypto/rand
}

func (n *Node) network(incarnation uint64) fleasenet.Config {
	c := fleasenet.Config{
		Self: machine.Process(n.cfg.Self), Incarnation: incarnation, Listen: n.cfg.Listen, Key: n.cfg.Key, OtherKeys: n.cfg.OtherKeys,
		Fingerprint: n.cfg.fingerprint(),
		Receive:     n.receive, Strange: n.receiveStranger, Drained: n.flush, Logger: n.log.Logger,
	}
	for _, m := range n.cfg.Members {
		c.Peers = append(c.Peers, fleasenet.Peer{Process: machine.Process(m.ID), Addr: m.Addr, Name: m.Name})
	}
	return c
}

// Done returns a channel that is closed when the node ceases to take part: it was
// closed, or it has given way to another process with the same ID. Then all its leases
// have ended, calls fail, and the node must still be closed with [Node.Close].
// [Node.Err] returns the reason.
func (n *Node) Done() <-chan struct{} { return n.life.done.Done() }

// Err returns nil until Done is closed, and then the reason: an error of kind
// [leasehold.ErrClosed], or [leasehold.ErrNameTaken] if another process runs
// as the same member.
func (n *Node) Err() error { return context.Cause(n.life.done) }

// Self returns the ID of this node.
func (n *Node) Self() ID { return n.cfg.Self }

// Addr returns the local address.
func (n *Node) Addr() string { return n.net.Addr() }

// Ready waits until the node takes part. All promises that it may have made before
// its start must have expired, which takes Lease times Drift, or Lease and twice
// Epsilon if that is longer; and no stranger may have sent a packet for as long: see
// Status.Strangers. It returns an error if ctx ends before, or the node is closed, or
// another process runs as the same member: see [Node.Done].
func (n *Node) Ready(ctx context.Context) error {
	if err := n.Err(); err != nil {
		return err
	}
	select {
	case <-n.life.ready.Done():
		return nil
	case <-n.Done():
		return n.Err()
	case <-ctx.Done():
		n.mu.Lock()
		defer n.mu.Unlock()
		return leasehold.Errorf("ready", leasehold.ErrUnavailable, "", "%s: %w", n.notReadyReason(), context.Cause(ctx))
	}
}

// Close releases all leases, fails waiting calls, and stops the node. No lease is valid
// after the start of the call. It waits for acks of the members, until ctx ends and at
// most a few seconds. An error means that the release may not have reached a majority;
// the node is closed all the same. Another call waits for the first one until its own
// ctx ends, and returns the same result.
func (n *Node) Close(ctx context.Context) error {
	leases, first := n.endAll()
	if !first {
		return n.awaitClosed(ctx)
	}
	err := n.ReleaseAll(ctx, leases)
	n.life.stop()
	err = errors.Join(err, n.net.Close())
	n.life.running.Wait()
	if err != nil {
		n.life.closeErr = &leasehold.Error{Op: opClose, Kind: leasehold.ErrUnavailable, Err: err}
	}
	n.life.end(errClosed("flease", ""))
	close(n.life.closed)
	return n.life.closeErr
}

func (n *Node) awaitClosed(ctx context.Context) error {
	select {
	case <-n.life.closed:
		return n.life.closeErr
	case <-ctx.Done():
		if isClosed(n.life.closed) {
			return n.life.closeErr
		}
		return leasehold.Errorf(opClose, leasehold.ErrUnavailable, "", "another call of Close is in progress: %w", context.Cause(ctx))
	}
}

// endAll cancels all claims, ends all leases, and returns the leases. It reports false
// if another call has done so.
func (n *Node) endAll() (leases []*Lease, first bool) {
	n.step(func(now machine.Time) {
		if first = !n.life.closing; !first {
			return
		}
		n.life.closing = true
		waiting := make(map[*batch]bool)
		for _, e := range n.requests.entries {
			if e.lease != nil {
				e.lease.end(closed)
				leases = append(leases, e.lease)
			}
			for _, c := range e.claims {
				waiting[c.batch] = true
			}
		}
		for b := range waiting {
			n.cancel(now, b, func(name string) error { return errClosed(opAcquire, name) })
		}
	})
	return leases, first
}

// tick is the longest interval between reads of the clocks.
const tick = time.Second
