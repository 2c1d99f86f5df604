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

// A Node is this process's part in the system. All its methods may be called from
// many goroutines at once.
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
	sleeps   uint64            // that the machine knows of
	source   *fleasenet.Source // of the packet that is being handled; nil if none is
	requests requests
	watches  map[string][]chan struct{}
	roster   roster
	counts   Counts
	clock    ClockStatus
	after    aftermath
}

// A lifecycle is the states that a node goes through: started, ready, done, closed.
type lifecycle struct {
	ready    context.Context // ends when the node takes part
	setReady context.CancelFunc
	done     context.Context // ends when it no longer does, with the reason for its cause
	end      context.CancelCauseFunc

	closing  bool          // Close was called; guarded by the node's lock
	closed   chan struct{} // closed when Close has finished
	closeErr error         // its result; not changed after closed

	stop    context.CancelFunc // ends the goroutines
	running sync.WaitGroup
}

// start begins a lifecycle, and returns a context that ends with it.
func (l *lifecycle) start() (ctx context.Context) {
	l.ready, l.setReady = context.WithCancel(context.Background())
	l.done, l.end = context.WithCancelCause(context.Background())
	l.closed = make(chan struct{})
	ctx, l.stop = context.WithCancel(context.Background())
	return ctx
}

// A timer is when the machine is advanced next.
type timer struct {
	at    mono.Instant
	rouse chan struct{} // has one when the timer is to be set anew
}

// requests are what calls of this process want, and what they have got.
type requests struct {
	entries []*entry // in no order
	pending []*batch // may go on
	spare   []*batch // room for the next of them
	batches uint64   // so far
}

// Start starts a member. It begins to take part after a while: see [Node.Ready].
// Calls may be made at once, and wait.
func Start(cfg Config) (*Node, error) { return start(cfg, newSystemTime()) }

func start(cfg Config, t timepiece) (*Node, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, time: t, log: newJournal(&cfg), roster: newRoster(&cfg),
		timer: timer{rouse: make(chan struct{}, 1)}, watches: make(map[string][]chan struct{}),
	}
	decides := cfg.machine()
	decides.Incarnation, decides.Rand = draw()
	decides.Fresh = func(uint64) uint64 { another, _ := draw(); return another }
	if _, err := machine.New(machine.Time{}, decides); err != nil {
		return nil, err // before anything is opened
	}
	failpoint.Here("flease/before-opening")
	n.mu.Lock() // the net may have something for us before we have a machine
	defer n.mu.Unlock()
	var err error
	if n.net, err = cfg.Transport.open(n.network(decides.Incarnation)); err != nil {
		return nil, err
	}
	// Whoever had our address before has it no more. How long we are silent counts
	// from here on: until now it may have promised and accepted in our name.
	now, sleeps := t.read()
	n.sleeps = sleeps
	if n.machine, err = machine.New(now, decides); err != nil {
		return nil, err
	}
	ctx := n.life.start()
	n.life.running.Go(func() { n.keepTime(ctx) })
	n.life.running.Go(func() { t.watch(ctx, func() { n.step(func(machine.Time) {}) }) })
	return n, nil
}

// draw draws an incarnation, which no other start of any process has, and a
// source of jitter.
func draw() (uint64, *mrand.Rand) {
	var seed [24]byte
	_, _ = rand.Read(seed[:]) // never fails
	part := func(i int) uint64 { return binary.LittleEndian.Uint64(seed[8*i:]) }
	return max(1, part(0)), mrand.New(mrand.NewPCG(part(1), part(2))) //nolint:gosec // for backoffs; the incarnation is from crypto/rand
}

func (n *Node) network(incarnation uint64) fleasenet.Config {
	c := fleasenet.Config{
		Self: machine.Process(n.cfg.Self), Incarnation: incarnation, Listen: n.cfg.Listen, Key: n.cfg.Key, OtherKeys: n.cfg.OtherKeys,
		Fingerprint: n.cfg.fingerprint(),
		Receive:     n.receive, Strange: n.strange, Drained: n.flush, Logger: n.log.Logger,
	}
	for _, m := range n.cfg.Members {
		c.Peers = append(c.Peers, fleasenet.Peer{Process: machine.Process(m.ID), Addr: m.Addr, Name: m.Name})
	}
	return c
}

// Done returns a channel that is closed when the node takes part no more: it is
// closed, or another process was found to run as the same member, and this one has
// given way to it. Then all its leases are over, no call will get one, and what is
// left is to [Node.Close] it. [Node.Err] says which.
func (n *Node) Done() <-chan struct{} { return n.life.done.Done() }

// Err returns nil until Done is closed, and then why the node takes part no more:
// its kind is [leasehold.ErrClosed], or [leasehold.ErrNameTaken] if another process runs
// as the same member.
func (n *Node) Err() error { return context.Cause(n.life.done) }

// Self is the member that this node is.
func (n *Node) Self() ID { return n.cfg.Self }

// Addr is where it listens.
func (n *Node) Addr() string { return n.net.Addr() }

// Ready returns when the node takes part: when whatever it may have promised
// before it was started is over, which takes Lease times Drift, or Lease and twice
// Epsilon if that is longer; and when no member that was told otherwise has been
// heard for as long: see Status.Strangers. It returns an error if ctx ends before,
// or the node is closed, or another process runs as the same member: see
// [Node.Done].
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
		return leasehold.Errorf("ready", leasehold.ErrUnavailable, "", "%s: %w", n.whyNotReady(), context.Cause(ctx))
	}
}

// Close releases all leases, lets those who wait for one go with an error, and
// ends the node. No lease is valid from the beginning of the call on. It waits
// for the members to know, as long as ctx allows and a few seconds at most; an
// error means that they may not, and the node is closed all the same. A call that
// is not the first waits for the first as long as its own ctx allows, and returns
// the same.
func (n *Node) Close(ctx context.Context) error {
	leases, first := n.shut()
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
		return leasehold.Errorf(opClose, leasehold.ErrUnavailable, "", "another call is closing it: %w", context.Cause(ctx))
	}
}

// shut ends everything that has been asked for, and returns what is held. It
// reports false if another call has done so.
func (n *Node) shut() (leases []*Lease, first bool) {
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

// tick is how often the node looks at its clocks at least.
const tick = time.Second
