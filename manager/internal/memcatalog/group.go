// Package memcatalog replaces the store in a diskless group of managers. A lease of package flease
// elects the leader. Each manager has a replica of the catalog of namespaces in memory. The lease
// tables are in the leader's memory only: a new leader rebuilds them from the owners' claims.
//
// It is a shell: machine/flease, machine/leadership/bylease and machine/memcatalog decide.
// docs/ARCHITECTURE.md, "Without a store", has the safety argument.
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

// leadership is the Flease resource whose lease elects the leader.
const leadership = "leader"

// A Group is one manager's part in a diskless group. It is safe for concurrent use.
type Group struct {
	cfg     Config
	log     *slog.Logger
	digests []uint64 // accepted ones; the first is this manager's
	node    *flease.Node
	replica *replica
	logs    logs

	voting       atomic.Bool   // this manager's Flease node votes
	deaf         atomic.Bool   // the leader lives, and its Flease messages do not arrive here
	leader       atomic.Uint64 // Flease ID of the manager that last called as the leader; 0 without one
	leaderCallAt atomic.Int64  // the instant of that call
	seenTerm     atomic.Uint64 // the highest term that a manager or owner has seen: the next must be higher

	lease    atomic.Pointer[flease.Lease] // nil unless this manager leads
	ledSince atomic.Int64                 // the instant when the newest lease was acquired
	// releasedTerm is the highest term whose lease must be released; stepDown signals a change.
	releasedTerm atomic.Uint64
	stepDown     chan struct{}

	ctx       context.Context // of the group: Close cancels it
	cancel    context.CancelFunc
	candidacy context.Context // Resign cancels it
	resign    context.CancelFunc
	running   sync.WaitGroup
}

var _ store.Tables = (*Group)(nil)

// Start joins a group. Config.Notify receives changes of leadership from now on.
func Start(cfg Config) (*Group, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	g := &Group{cfg: cfg, log: cfg.Logger, digests: cfg.digests(), stepDown: make(chan struct{}, 1)}
	var err error
	if g.replica, err = newReplica(g); err != nil {
		return nil, err
	}
	if g.node, err = flease.Start(cfg.flease()); err != nil {
		return nil, err
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.candidacy, g.resign = context.WithCancel(g.ctx)
	g.running.Go(g.campaign)
	g.running.Go(func() { g.replica.runTimer(g.ctx) })
	g.running.Go(g.monitor)
	return g, nil
}

// Register adds the service for the other managers of the group to a server.
func (g *Group) Register(s grpc.ServiceRegistrar) {
	storagev1.RegisterCouncilServiceServer(s, &shareService{g: g})
}

// StepDown releases the lease of a term, without waiting. The caller must have ceased to lead,
// and does not lead in that term again. The next term is above the given one.
func (g *Group) StepDown(term, above leasehold.Term) {
	if above > 0 {
		raise(&g.seenTerm, uint64(above))
		if err := g.node.RaiseFence(leadership, uint64(above)); err != nil {
			g.log.Warn("the next term may be too low, and would then be released at once", "above", above, "why", err)
		}
	}
	raise(&g.releasedTerm, uint64(term))
	select {
	case g.stepDown <- struct{}{}:
	default: // a signal is pending
	}
}

// raise raises a value to at least least.
func raise(to *atomic.Uint64, least uint64) {
	for {
		before := to.Load()
		if before >= least || to.CompareAndSwap(before, least) {
			return
		}
	}
}

// Resign ends the candidacy: after this manager's lease is released, it does not acquire another.
func (g *Group) Resign() { g.resign() }

// Close releases the lease, if this manager holds it, and stops the group. The caller must have
// ceased to lead.
func (g *Group) Close(ctx context.Context) error {
	g.cancel()
	g.running.Wait()
	return errors.Join(g.node.Close(ctx), g.replica.close())
}

// leads reports whether this manager holds a valid lease of leadership of a term.
func (g *Group) leads(term leasehold.Term) bool {
	l := g.lease.Load()
	return l != nil && l.Fence() == uint64(term) && l.Valid()
}

// Missing returns the managers whose reply a new leader still waits for, with their error if they
// refuse.
func (g *Group) Missing() []string { return g.replica.missing() }

// GrantDelay returns the time until leases may be granted. It is above 0 after the group has lost
// its catalog, until all leases from before have expired.
func (g *Group) GrantDelay() time.Duration { return g.replica.waits() }

// Status returns the status of the Flease node.
func (g *Group) Status() flease.Status { return g.node.Status() }

func (g *Group) notLeader(op string) error {
	return leasehold.Errorf(op, leasehold.ErrNotLeader, string(g.cfg.Self), "this manager does not lead; try again in a few seconds")
}

// Catalog implements [store.Tables]. It fails unless this manager leads.
func (g *Group) Catalog(ctx context.Context) (*storage.Catalog, error) { return g.replica.load(ctx) }

// SaveCatalog implements [store.Tables]. It is done when a majority of the managers has the
// catalog and this manager's lease is still valid.
func (g *Group) SaveCatalog(ctx context.Context, next *storage.Catalog) (storage.Outcome, error) {
	return g.replica.save(ctx, next)
}
