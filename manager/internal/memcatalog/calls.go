package memcatalog

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/bylease"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/memcatalog"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
)

// A peer is another manager, as the leader sees it. At most one call to it is in flight, and at
// most one request is queued.
type peer struct {
	id   storage.ManagerID
	conn *grpc.ClientConn // nil until the first call
	busy bool             // a call is in flight
	next *machine.Request // the queued one
	err  error            // of the last call
	// called: a call ended in the current leadership; answered: one succeeded.
	called, answered bool
}

// calls is the state of the calls to another manager.
type calls struct {
	made bool  // a call ended in this manager's current leadership
	err  error // of the last one
}

// alive reports whether the last call had a reply, be it a refusal.
func (c calls) alive() bool {
	return c.made && (c.err == nil || leasehold.KindOf(c.err) != leasehold.ErrUnavailable)
}

func (c *replica) calls(to storage.ManagerID) calls {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.peers[to]
	return calls{c.term != 0 && p.called, p.err}
}

// refuses reports whether the manager is up and rejects this leader's calls: it has another configuration.
func (p *peer) refuses() bool {
	return p.err != nil && leasehold.KindOf(p.err) != leasehold.ErrUnavailable
}

const opShare = "share the catalog"

const callTimeout = time.Second

// send sends a request, after the one in flight. It replaces a queued one. The lock is held.
func (c *replica) send(p *peer, r *machine.Request) {
	switch {
	case c.closed:
	case p.busy:
		p.next = r
	default:
		p.busy = true
		c.running.Go(func() { c.call(p, r) })
	}
}

// call sends a request and those that are queued meanwhile.
func (c *replica) call(p *peer, r *machine.Request) {
	for r != nil {
		failpoint.Here("memcatalog/before-sharing")
		answer, err := c.share(p, r)
		failpoint.Here("memcatalog/shared")
		c.mu.Lock()
		c.note(p, err)
		if p.refuses() {
			c.step(machine.Disputed{For: mismatchExpiry})
		}
		// Replies count only in the term of the request, while its lease is valid: see the machine.
		if err == nil && !c.closed && c.g.leads(r.Term) && r.Term == c.term {
			p.answered = true
			c.step(machine.Answered{From: p.id, Response: answer})
		}
		r, p.next = p.next, nil
		if c.closed {
			r = nil
		}
		p.busy = r != nil
		c.mu.Unlock()
	}
}

func (c *replica) share(p *peer, r *machine.Request) (*machine.Response, error) {
	if !c.g.leads(r.Term) {
		return nil, c.g.notLeader(opShare)
	}
	conn, err := c.connect(p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.g.ctx, callTimeout)
	defer cancel()
	answer, err := storagev1.NewCouncilServiceClient(conn).Share(ctx, fromRequest(c.g.digests[0], c.g.cfg.Self, r))
	if err != nil {
		return nil, wire.ToError(err)
	}
	if err := wire.CheckVersion(answer.GetVersion()); err != nil {
		return nil, err
	}
	return toResponse(answer)
}

func (c *replica) connect(p *peer) (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.conn != nil {
		return p.conn, nil
	}
	conn, err := c.g.cfg.Dial(p.id)
	if err == nil {
		p.conn = conn
	}
	return conn, err
}

// note records the result of a call, and logs a change: the first failure of a kind, and the first
// success after it. The lock is held.
func (c *replica) note(p *peer, err error) {
	kind, before, fault := leasehold.KindOf(err), p.err, leasehold.KindOf(p.err)
	if c.g.ctx.Err() != nil || kind == leasehold.ErrNotLeader {
		return
	}
	p.err, p.called = err, true
	if (err != nil) == (before != nil) && kind == fault {
		return
	}
	switch {
	case err == nil:
		c.g.log.Info("call to a manager of the group succeeds again", "peer", p.id)
	case kind == leasehold.ErrUnavailable:
		c.g.log.Info("call to a manager of the group failed", "peer", p.id, "why", err)
	default:
		c.g.log.Error("a manager of the group rejects this leader", "peer", p.id, "why", err)
	}
}

// recordMismatch records a call of a leader with other settings, and logs it with a rate limit.
func (c *replica) recordMismatch(from string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mismatched, c.mismatchAt = from, c.g.cfg.Clock.Now()
	c.step(machine.Disputed{For: mismatchExpiry})
	if _, ok := c.warned.Allow("stranger", 1); ok {
		c.g.log.Error("this manager does not take part: the leader has other --peers, --ttl, --epsilon, --drift, --longest-lease or --peer-key-file. "+
			"Start all managers with the same", "leader", from)
	}
}

// mismatchedLeader returns a leader with other settings if one has called recently, or "".
func (c *replica) mismatchedLeader() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mismatchAt == 0 || c.g.cfg.Clock.Now().Sub(c.mismatchAt) > mismatchExpiry {
		return ""
	}
	return c.mismatched
}

const (
	mismatchLogInterval = 10 * time.Minute
	mismatchExpiry      = 5 * time.Second // several times the interval of a leader's calls
)

// shareService serves the calls of other managers.
type shareService struct {
	storagev1.UnimplementedCouncilServiceServer
	g *Group
}

// Share serves a call of the leader: it passes it to the machine, and returns the machine's reply.
func (s *shareService) Share(_ context.Context, r *storagev1.ShareRequest) (*storagev1.ShareResponse, error) {
	if err := wire.CheckVersion(r.GetVersion()); err != nil {
		return nil, wire.FromError(err)
	}
	if !slices.Contains(s.g.digests, r.GetGroup()) {
		s.g.replica.recordMismatch(r.GetFrom())
		return nil, wire.FromError(leasehold.Errorf(opShare, leasehold.ErrInvalid, string(s.g.cfg.Self),
			"its managers, times or key differ from those of %s: %s", r.GetFrom(), sameFlagsHint))
	}
	from, request, err := toRequest(r)
	if err != nil {
		return nil, wire.FromError(err)
	}
	answer := s.g.replica.handleRequest(from, request)
	failpoint.Here("memcatalog/asked-before-answer")
	if answer == nil {
		return nil, wire.FromError(leasehold.Errorf(opShare, leasehold.ErrInvalid, string(s.g.cfg.Self), "%s is not another manager of its group", from))
	}
	s.g.leaderCallAt.Store(int64(s.g.cfg.Clock.Now()))
	s.g.leader.Store(uint64(Peer{Manager: from}.id()))
	s.g.cfg.Notify(bylease.Leads{Manager: from, Term: request.Term})
	return fromResponse(answer), nil
}
