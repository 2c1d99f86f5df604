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

// A peer is another manager, as the leader sees it. At most one call to it is under
// way, and at most one waits for that.
type peer struct {
	id   storage.ManagerID
	conn *grpc.ClientConn // nil until it is first asked
	busy bool
	next *machine.Request
	why  error // the last call failed, if it did
	// called: a call has ended since we began to lead, and answered: with an answer.
	called, answered bool
}

// calls is how calls to another manager go.
type calls struct {
	made bool  // since we lead; if we do not, nobody is called
	why  error // the last one failed, if it did
}

// alive reports whether the other has answered, if only that it refuses.
func (c calls) alive() bool {
	return c.made && (c.why == nil || leasehold.KindOf(c.why) != leasehold.ErrUnavailable)
}

// calls returns how calls to another manager go.
func (c *replica) calls(to storage.ManagerID) calls {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.peers[to]
	return calls{c.term != 0 && p.called, p.why}
}

const opShare = "share the catalog"

// callPatience is how long a manager has to answer another.
const callPatience = time.Second

// ask sends a request, after the one that is under way; of two that wait the newer
// counts. The lock is held.
func (c *replica) ask(p *peer, r *machine.Request) {
	switch {
	case c.closed:
	case p.busy:
		p.next = r
	default:
		p.busy = true
		c.running.Go(func() { c.call(p, r) })
	}
}

// call asks another manager until nothing is left to ask.
func (c *replica) call(p *peer, r *machine.Request) {
	for r != nil {
		failpoint.Here("memcatalog/before-sharing")
		answer, err := c.share(p, r)
		failpoint.Here("memcatalog/shared")
		c.mu.Lock()
		c.note(p, err)
		// Only the leader may learn who is there: see the machine.
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
	ctx, cancel := context.WithTimeout(c.g.ctx, callPatience)
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

// note says that a manager does not answer, and that it does again: once each. The
// lock is held.
func (c *replica) note(p *peer, err error) {
	kind, before, fault := leasehold.KindOf(err), p.why, leasehold.KindOf(p.why)
	if c.g.ctx.Err() != nil || kind == leasehold.ErrNotLeader {
		return
	}
	p.why, p.called = err, true
	if (err != nil) == (before != nil) && kind == fault {
		return
	}
	switch {
	case err == nil:
		c.g.log.Info("a manager of the group answers again", "peer", p.id)
	case kind == leasehold.ErrUnavailable:
		c.g.log.Info("a manager of the group does not answer", "peer", p.id, "why", err)
	default:
		c.g.log.Error("a manager of the group refuses to be led", "peer", p.id, "why", err)
	}
}

// strange says, now and then, that a manager leads that was started otherwise.
func (c *replica) strange(from string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stranger, c.strangeAt = from, c.g.cfg.Clock.Now()
	if _, ok := c.warned.Allow("stranger", 1); ok {
		c.g.log.Error("another manager leads, and was started with other managers, times or key than this one: this one takes no part. "+
			"Give all of them the same --peers, --ttl, --epsilon, --drift, --longest-lease and --peer-key-file", "leader", from)
	}
}

// strangeLeader returns who leads that was started otherwise, if it has called lately.
func (c *replica) strangeLeader() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.strangeAt == 0 || c.g.cfg.Clock.Now().Sub(c.strangeAt) > strangeLasts {
		return ""
	}
	return c.stranger
}

const (
	strangeEvery = 10 * time.Minute // is how often that is said while it lasts
	strangeLasts = 5 * time.Second  // a leader calls several times in it
)

// shareService is what other managers call.
type shareService struct {
	storagev1.UnimplementedCouncilServiceServer
	g *Group
}

// Share hears who leads, and answers what we know.
func (s *shareService) Share(_ context.Context, r *storagev1.ShareRequest) (*storagev1.ShareResponse, error) {
	if err := wire.CheckVersion(r.GetVersion()); err != nil {
		return nil, wire.FromError(err)
	}
	if !slices.Contains(s.g.digests, r.GetGroup()) {
		s.g.replica.strange(r.GetFrom())
		return nil, wire.FromError(leasehold.Errorf(opShare, leasehold.ErrInvalid, string(s.g.cfg.Self),
			"it was started with other managers or times than %s, or with another key: %s", r.GetFrom(), tellAlike))
	}
	from, request, err := toRequest(r)
	if err != nil {
		return nil, wire.FromError(err)
	}
	answer := s.g.replica.asked(from, request)
	failpoint.Here("memcatalog/asked-before-answer")
	if answer == nil {
		return nil, wire.FromError(leasehold.Errorf(opShare, leasehold.ErrInvalid, string(s.g.cfg.Self), "%s is not another manager of its group", from))
	}
	s.g.told.Store(int64(s.g.cfg.Clock.Now()))
	s.g.leader.Store(uint64(Peer{Manager: from}.id()))
	s.g.cfg.Hear(bylease.Leads{Manager: from, Term: request.Term})
	return fromResponse(answer), nil
}
