// Package memcatalog is what managers have in place of a store. They agree among
// themselves who leads, by a lease of package flease; the catalog of namespaces is
// in the memory of all of them; and the lease tables are in the leader's, who finds
// them out by asking the owners.
//
// It is a shell: machine/flease, machine/appointment and machine/memcatalog decide,
// and docs/ARCHITECTURE.md, "Without a store", has the argument.
package memcatalog

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
)

// leadership is the resource whose lease leadership is.
const leadership = "leader"

// A Group is one manager's part in a group without a store. All its methods may be
// called from many goroutines at once.
type Group struct {
	cfg     Config
	log     *slog.Logger
	digests []uint64 // of those who belong to it; the first is our own
	node    *flease.Node
	replica *replica
	logs    logs

	votes  atomic.Bool   // we take part in the agreement about who leads
	silent atomic.Bool   // we have not heard the leader's part in that for a while
	leader atomic.Uint64 // its number, as it has told us; 0 if nobody has
	told   atomic.Int64  // when it has told us last, on the manager's clock
	above  atomic.Uint64 // a term that somebody has heard of: the next must be higher

	// lease is what we have, if we do, and ledSince when we last got one, on the
	// manager's clock.
	lease    atomic.Pointer[flease.Lease]
	ledSince atomic.Int64
	// givenUp is the highest term whose lease is to be given up; more signals it.
	givenUp atomic.Uint64
	more    chan struct{}

	ctx     context.Context // ends when everything must
	cancel  context.CancelFunc
	wanting context.Context // ends when we no longer want to lead
	resign  context.CancelFunc
	running sync.WaitGroup
}

var _ store.Tables = (*Group)(nil)

// Start joins a group. What becomes of leadership is told to Config.Hear from now
// on.
func Start(cfg Config) (*Group, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	g := &Group{cfg: cfg, log: cfg.Logger, digests: cfg.digests(), more: make(chan struct{}, 1)}
	var err error
	if g.replica, err = newReplica(g); err != nil {
		return nil, err
	}
	if g.node, err = flease.Start(cfg.flease()); err != nil {
		return nil, err
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.wanting, g.resign = context.WithCancel(g.ctx)
	g.running.Go(g.campaign)
	g.running.Go(func() { g.replica.keepTime(g.ctx) })
	g.running.Go(g.listen)
	return g, nil
}

// Register adds what other managers of the group call to a server.
func (g *Group) Register(s grpc.ServiceRegistrar) {
	storagev1.RegisterCouncilServiceServer(s, &shareService{g: g})
}

// StepDown gives up the lease of a term. Whoever led by it must have stopped, and
// will not lead in that term again; the next one will be above a given one. It does not
// wait.
func (g *Group) StepDown(term, above leasehold.Term) {
	if above > 0 {
		raise(&g.above, uint64(above))
		if err := g.node.RaiseFence(leadership, uint64(above)); err != nil {
			g.log.Warn("the next term may not be high enough, and be given up again", "above", above, "why", err)
		}
	}
	raise(&g.givenUp, uint64(term))
	select {
	case g.more <- struct{}{}:
	default: // it has a signal that it has not seen
	}
}

func raise(to *atomic.Uint64, least uint64) {
	for {
		before := to.Load()
		if before >= least || to.CompareAndSwap(before, least) {
			return
		}
	}
}

// Resign lets others lead: when the lease that we may have is given up, it is not
// acquired again.
func (g *Group) Resign() { g.resign() }

// Close gives up the lease, if we have it, and ends everything. Whoever led by it
// must have stopped.
func (g *Group) Close(ctx context.Context) error {
	g.cancel()
	g.running.Wait()
	return errors.Join(g.node.Close(ctx), g.replica.close())
}

// leads reports whether we have the lease of leadership, in a term.
func (g *Group) leads(term leasehold.Term) bool {
	l := g.lease.Load()
	return l != nil && l.Fence() == uint64(term) && l.Valid()
}

// Missing says who has not answered since we lead, if we wait for that, and why if it
// refuses.
func (g *Group) Missing() []string { return g.replica.missing() }

// Waits returns for how much longer nothing is granted, because what owners were
// promised may be forgotten; 0 if that is not feared.
func (g *Group) Waits() time.Duration { return g.replica.waits() }

// Status returns how the lease of leadership does.
func (g *Group) Status() flease.Status { return g.node.Status() }

// Longest is for how long an owner may believe in a lease at most.
func (g *Group) Longest() time.Duration { return g.cfg.Longest }

// notLeader says that only the leader knows.
func (g *Group) notLeader(op string) error {
	return leasehold.Errorf(op, leasehold.ErrNotLeader, string(g.cfg.Self), "this manager does not lead; try again in a few seconds")
}

// Catalog implements [store.Tables]. Only the leader knows.
func (g *Group) Catalog(ctx context.Context) (*storage.Catalog, error) { return g.replica.load(ctx) }

// SaveCatalog implements [store.Tables]. It is done when a majority of the managers
// has it, and nobody else can lead yet.
func (g *Group) SaveCatalog(ctx context.Context, next *storage.Catalog) (storage.Outcome, error) {
	return g.replica.save(ctx, next)
}
