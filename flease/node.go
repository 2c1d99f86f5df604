package flease

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	mrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/failpoint"
	"github.com/leasehold-dev/leasehold/internal/fleasenet"
	machine "github.com/leasehold-dev/leasehold/internal/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/mono"
)

// A Node is this process's part in the system. All its methods may be called from
// many goroutines at once.
type Node struct {
	cfg  Config
	time timepiece
	net  fleasenet.Net

	ready chan struct{} // closed when it takes part
	rouse chan struct{} // has one when the timer is to be set anew
	over  chan struct{} // closed when it is closed
	ended error         // what became of that; not changed after over is closed
	done  chan struct{} // closed when it is, or has given way

	stop    context.CancelFunc
	running sync.WaitGroup

	// mu guards everything below, and the sending side of net.
	mu      sync.Mutex
	machine *machine.Machine
	wake    mono.Instant // when the timer will go off
	sleeps  uint64       // that the machine knows of
	closing bool
	gaveWay error             // to another process with our ID; nil if it has not
	source  *fleasenet.Source // of the packet that is being handled; nil if none is

	entries []*entry // in no order
	pending []*batch // may go on
	spare   []*batch // room for the next of them
	batches uint64   // so far
	watches map[string][]chan struct{}

	members   []*member // in the order of IDs
	strangers map[ID]*stranger
	greeted   mono.Instant // when the others were greeted last, before we took part
	counts    Counts
	clock     ClockStatus
	after     aftermath
	journal   journal
}

// Start starts a member. It begins to take part after a while: see [Node.Ready].
// Calls may be made at once, and wait.
func Start(cfg Config) (*Node, error) { return start(cfg, newSystemTime()) }

func start(cfg Config, t timepiece) (*Node, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, time: t,
		ready: make(chan struct{}), rouse: make(chan struct{}, 1), over: make(chan struct{}), done: make(chan struct{}),
		watches: make(map[string][]chan struct{}), strangers: make(map[ID]*stranger),
		members: newMembers(&cfg), journal: journal{log: cfg.Logger.With("member", cfg.self().name())},
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
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	n.running.Go(func() { n.keepTime(ctx) })
	n.running.Go(func() { t.watch(ctx, func() { n.step(func(machine.Time) {}) }) })
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

// network is what the transport has to know.
func (n *Node) network(incarnation uint64) fleasenet.Config {
	c := fleasenet.Config{
		Self: machine.Process(n.cfg.Self), Incarnation: incarnation, Listen: n.cfg.Listen, Key: n.cfg.Key, OtherKeys: n.cfg.OtherKeys,
		Fingerprint: n.cfg.fingerprint(),
		Receive:     n.receive, Strange: n.strange, Drained: n.flush, Logger: n.journal.log,
	}
	for _, m := range n.cfg.Members {
		c.Peers = append(c.Peers, fleasenet.Peer{Process: machine.Process(m.ID), Addr: m.Addr, Name: m.Name})
	}
	return c
}

// newMembers returns those besides ourselves.
func newMembers(c *Config) []*member {
	var all []*member
	for _, m := range c.Members {
		if m.ID != c.Self {
			all = append(all, &member{Member: m})
		}
	}
	slices.SortFunc(all, func(a, b *member) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Done returns a channel that is closed when the node takes part no more: it is
// closed, or another process was found to run as the same member, and this one has
// given way to it. Then all its leases are over, no call will get one, and what is
// left is to [Node.Close] it. [Node.Err] says which.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns nil until Done is closed, and then why the node takes part no more:
// its kind is [leasehold.Closed], or [leasehold.NameTaken] if another process runs
// as the same member.
func (n *Node) Err() error {
	select {
	case <-n.done:
	default:
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.gaveWay != nil {
		return n.gaveWay
	}
	return errClosed("flease", "")
}

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
	select {
	case <-n.done:
		return n.Err()
	default:
	}
	select {
	case <-n.ready:
		return nil
	case <-n.done:
		return n.Err()
	case <-ctx.Done():
		return leasehold.Errorf("ready", leasehold.Unavailable, "", "%s: %w", n.waits(), context.Cause(ctx))
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
	n.stop()
	err = errors.Join(err, n.net.Close())
	n.running.Wait()
	if err != nil {
		n.ended = &leasehold.Error{Op: opClose, Kind: leasehold.Unavailable, Err: err}
	}
	close(n.over)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.finish()
	return n.ended
}

// awaitClosed waits for another call that closes the node.
func (n *Node) awaitClosed(ctx context.Context) error {
	select {
	case <-n.over:
		return n.ended
	default: // now ctx counts
	}
	select {
	case <-n.over:
		return n.ended
	case <-ctx.Done():
		return leasehold.Errorf(opClose, leasehold.Unavailable, "", "another call is closing it: %w", context.Cause(ctx))
	}
}

// shut ends everything that has been asked for, and returns what is held. It
// reports false if another call has done so.
func (n *Node) shut() (leases []*Lease, first bool) {
	n.step(func(now machine.Time) {
		if first = !n.closing; !first {
			return
		}
		n.closing = true
		waiting := make(map[*batch]bool)
		for _, e := range n.entries {
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
