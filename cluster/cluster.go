package cluster

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
)

// A Cluster is this process's part in a cluster. Its methods are safe for concurrent use.
type Cluster struct {
	cfg     Config
	members []string
	port    *port
	manager *manager.Manager // nil unless this member votes
	web     *web             // nil without Config.Handler
	owner   *owner.Owner
	lookup  *lookup.Lookup

	running sync.WaitGroup
	closing atomic.Bool
	leaving chan struct{} // closed by the first Close
	done    chan struct{}
	failure error // the reason; read after done
	closed  error // the result of Close; read after done
}

// Join makes this process a member of a cluster. It returns when this process is an owner and its
// lookup has the lease table. Until then it waits for a majority of the managers, and in a new cluster
// for Longest after the election, and logs for what it waits.
//
// It fails at once with [leasehold.ErrInvalid] if the configuration is invalid. The context bounds
// Join, not the lifetime of the membership, which ends with Close. While Join runs, this process
// already counts for the majority.
func Join(ctx context.Context, cfg Config) (_ *Cluster, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := newCluster(cfg)
	defer func() {
		if err != nil {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			_ = c.Close(ended) // Join returns the first error
		}
	}()
	if c.members, err = c.cfg.awaitMembers(ctx); err != nil {
		return nil, err
	}
	if err := c.serve(ctx); err != nil {
		return nil, err
	}
	if err := c.lead(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := c.untilManagerFails(ctx)
	defer cancel(nil)
	if err := c.own(ctx); err != nil {
		return nil, err
	}
	c.lookup, err = lookup.Open(ctx, lookup.Config{
		Namespace: c.cfg.Namespace, Managers: c.Voters(), Credentials: c.cfg.ClientCredentials, Logger: c.cfg.Logger, Metrics: c.cfg.Metrics,
	})
	if err != nil {
		return nil, err
	}
	if c.web != nil {
		if err := c.web.open(c.lookup); err != nil {
			return nil, err
		}
	}
	c.watch()
	return c, nil
}

func newCluster(cfg Config) *Cluster {
	return &Cluster{cfg: cfg, leaving: make(chan struct{}), done: make(chan struct{})}
}

// watch ends the membership when the manager fails.
func (c *Cluster) watch() {
	if c.manager == nil {
		return
	}
	c.running.Go(func() {
		select {
		case <-c.manager.Done():
			c.fail(c.manager.Err())
		case <-c.leaving:
		}
	})
}

// listen opens the port. A host name may not be resolvable yet, like that of a pod which has just started.
func (c *Cluster) listen(ctx context.Context) (listener net.Listener, err error) {
	err = c.cfg.await(ctx, "the address of its port", dnsPoll, func() (string, error) {
		var failed error
		listener, failed = new(net.ListenConfig).Listen(ctx, "tcp", c.cfg.Listen)
		var unknown *net.DNSError
		switch {
		case failed == nil:
			return "", nil
		case errors.As(failed, &unknown), ctx.Err() != nil:
			return failed.Error(), nil
		}
		return "", c.cfg.bad("the port cannot be opened: %w", failed)
	})
	return listener, err
}

// serve opens the port, and closes the inlets without a server.
func (c *Cluster) serve(ctx context.Context) error {
	listener, err := c.listen(ctx)
	if err != nil {
		return err
	}
	c.port = newPort(listener)
	if c.cfg.Handler == nil {
		_ = c.port.pages.Close()
	} else {
		c.web = newWeb(&c.cfg, c.port.pages)
	}
	if !c.votes() {
		_ = c.port.calls.Close()
	}
	return nil
}

// lead starts the manager of a voter, waits until it has the namespaces, and creates the namespace.
func (c *Cluster) lead(ctx context.Context) (err error) {
	if !c.votes() {
		return nil
	}
	if c.manager, err = manager.Start(c.cfg.manager(c.members, c.port.calls)); err != nil {
		return err
	}
	err = c.cfg.await(ctx, "the other members", statePoll, func() (string, error) { return c.manager.NotReady(), c.manager.Err() })
	if err != nil {
		return err
	}
	return c.createNamespace(ctx)
}

// untilManagerFails returns a context that ends when the manager does: without it Join could wait for ever.
func (c *Cluster) untilManagerFails(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if c.manager != nil {
		c.running.Go(func() {
			select {
			case <-c.manager.Done():
				cancel(c.manager.Err())
			case <-ctx.Done():
			}
		})
	}
	return ctx, cancel
}

// own makes this process an owner. A member that does not vote may be here before the voters have
// created the namespace.
func (c *Cluster) own(ctx context.Context) error {
	return c.cfg.await(ctx, "the namespace", dnsPoll, func() (string, error) {
		moves := c.port.reopenMoves()
		as := c.cfg.owner(c.members, moves)
		if as.Mover == nil {
			_ = moves.Close()
		}
		err := c.joinOwner(ctx, as)
		if errors.Is(err, leasehold.ErrNotFound) {
			return err.Error(), nil
		}
		return "", err
	})
}

func (c *Cluster) joinOwner(ctx context.Context, as owner.Config) (err error) {
	if c.cfg.State == nil {
		c.owner, err = owner.Join(ctx, as)
		return err
	}
	if err = c.cfg.State.Join(ctx, as); err == nil {
		c.owner = c.cfg.State.Owner()
	}
	return err
}

func (c *Cluster) votes() bool { return slices.Contains(c.Voters(), c.cfg.Self) }

// Owner returns the owner of this process.
func (c *Cluster) Owner() *owner.Owner { return c.owner }

// Lookup returns the lookup of this process.
func (c *Cluster) Lookup() *lookup.Lookup { return c.lookup }

// Voters returns the names of the members that run managers: the addresses for tools, and for the
// lookups of other processes. Only members are owners: others could not exchange state with them.
func (c *Cluster) Voters() []string { return slices.Clone(voters(c.members)) }

// A Status is the state of a member.
type Status struct {
	Self    string
	Members []string // all, in their order
	Voters  []string // those that run managers
	// Problem is why this member's manager cannot serve, "" if it can, or does not vote.
	Problem string
	// StopRisk is why no voter may be stopped, as far as this one can see: the others might be fewer than
	// a majority. "" if one may be stopped, or this member does not vote.
	StopRisk string
	Owner    owner.Status
}

// Status returns the current status of this member. [github.com/leasehold-dev/leasehold/admin] has the
// status of the cluster.
func (c *Cluster) Status() Status {
	s := Status{Self: c.cfg.Self, Members: slices.Clone(c.members), Voters: c.Voters(), Owner: c.owner.Status()}
	if c.manager != nil {
		s.Problem, s.StopRisk = c.manager.NotReady(), c.manager.StopRisk()
	}
	return s
}

// Done returns a channel that is closed when the membership has ended, by Close or because the manager
// has failed. Err then returns the reason.
func (c *Cluster) Done() <-chan struct{} { return c.done }

// Err returns nil until Done is closed, and then the reason: [leasehold.ErrClosed] after Close.
func (c *Cluster) Err() error {
	select {
	case <-c.done:
		return c.failure
	default:
		return nil
	}
}

// fail ends the membership because of an error.
func (c *Cluster) fail(why error) {
	c.cfg.Logger.Error("this server leaves the cluster: its manager has failed", "why", why)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	go func() { _ = c.end(ended, why) }()
}

// Close moves all keys with their state to the other members while the Handler keeps serving, ends
// the Handler's requests, hands over leadership, and closes the port. If the context ends first, it ends
// the membership anyway and returns an error: state may be lost. Another call waits for the first, and
// returns its result.
func (c *Cluster) Close(ctx context.Context) error {
	return c.end(ctx, leasehold.Errorf("cluster", leasehold.ErrClosed, string(c.cfg.Namespace), "this server has left the cluster"))
}

// end ends the membership. Later calls wait for the first.
func (c *Cluster) end(ctx context.Context, why error) error {
	if c.closing.CompareAndSwap(false, true) {
		close(c.leaving)
		c.closed, c.failure = c.shutDown(ctx), why
		close(c.done)
		return c.closed
	}
	select {
	case <-c.done:
		return c.closed
	default:
	}
	select {
	case <-c.done:
		return c.closed
	case <-ctx.Done():
		return leasehold.Errorf("close cluster", leasehold.ErrUnavailable, string(c.cfg.Namespace), "another call of Close is in progress: %w", context.Cause(ctx))
	}
}

// shutDown ends the parts in the order of their dependencies. The port is last: the name of this process
// is free when nothing of it can act as an owner.
func (c *Cluster) shutDown(ctx context.Context) error {
	err := c.endOwner(ctx)
	if c.web != nil {
		err = cmp.Or(err, c.web.close(ctx))
	}
	if c.lookup != nil {
		err = cmp.Or(err, c.lookup.Close(ctx))
	}
	if c.manager != nil {
		err = cmp.Or(err, c.manager.Close(ctx))
	}
	if c.port != nil {
		c.port.close()
	}
	c.running.Wait()
	return err
}

func (c *Cluster) endOwner(ctx context.Context) error {
	switch {
	case c.owner == nil:
		return nil
	case c.cfg.State != nil:
		return c.cfg.State.Close(ctx)
	}
	return c.owner.Close(ctx)
}
