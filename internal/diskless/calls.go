package diskless

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/councilwire"
	"github.com/leasehold-dev/leasehold/internal/machine/appointment"
	machine "github.com/leasehold-dev/leasehold/internal/machine/council"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/wire"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
)

// A peer is another manager, as the leader sees it. At most one call to it is under
// way, and at most one waits for that.
type peer struct {
	id    storage.ManagerID
	conn  *grpc.ClientConn // nil until it is first asked
	busy  bool
	next  *machine.Request
	fault leasehold.Kind // of the last call, if it failed
	mute  bool           // the last call failed
	// answered: it has, since we began to lead.
	answered bool
}

const opCouncil = "council"

// callPatience is how long a manager has to answer another.
const callPatience = time.Second

// ask sends a request, after the one that is under way; of two that wait the newer
// counts. The lock is held.
func (c *council) ask(p *peer, r *machine.Request) {
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
func (c *council) call(p *peer, r *machine.Request) {
	for r != nil {
		answer, err := c.share(p, r)
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

func (c *council) share(p *peer, r *machine.Request) (*machine.Response, error) {
	if !c.g.leads(r.Term) {
		return nil, c.g.notLeader(opCouncil)
	}
	conn, err := c.connect(p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.g.ctx, callPatience)
	defer cancel()
	answer, err := storagev1.NewCouncilServiceClient(conn).Share(ctx, councilwire.FromRequest(c.g.digest, c.g.cfg.Self, r))
	if err != nil {
		return nil, wire.ToError(err)
	}
	if err := wire.CheckVersion(answer.GetVersion()); err != nil {
		return nil, err
	}
	return councilwire.ToResponse(answer)
}

func (c *council) connect(p *peer) (*grpc.ClientConn, error) {
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
func (c *council) note(p *peer, err error) {
	kind := leasehold.KindOf(err)
	if (err != nil) == p.mute && kind == p.fault || c.g.ctx.Err() != nil || kind == leasehold.NotLeader {
		return
	}
	p.mute, p.fault = err != nil, kind
	switch {
	case err == nil:
		c.g.log.Info("a manager of the group answers again", "peer", p.id)
	case kind == leasehold.Unavailable:
		c.g.log.Info("a manager of the group does not answer", "peer", p.id, "why", err)
	default:
		c.g.log.Error("a manager of the group refuses to be led", "peer", p.id, "why", err)
	}
}

// strange says, now and then, that a manager leads that was started otherwise.
func (c *council) strange(from string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.g.cfg.Clock.Now(); now >= c.strangeAgain {
		c.strangeAgain = now.Add(strangeEvery)
		c.g.log.Error("another manager leads, and was started with other managers, times or key than this one: this one takes no part. "+
			"Give all of them the same --peers, --ttl, --epsilon, --drift, --longest-lease and key", "leader", from)
	}
}

// strangeEvery is how often that is said while it lasts.
const strangeEvery = 10 * time.Minute

// councilService is what other managers call.
type councilService struct {
	storagev1.UnimplementedCouncilServiceServer
	g *Group
}

// Share hears who leads, and answers what we know.
func (s *councilService) Share(_ context.Context, r *storagev1.ShareRequest) (*storagev1.ShareResponse, error) {
	if err := wire.CheckVersion(r.GetVersion()); err != nil {
		return nil, wire.FromError(err)
	}
	if r.GetGroup() != s.g.digest {
		s.g.council.strange(r.GetFrom())
		return nil, wire.FromError(leasehold.Errorf(opCouncil, leasehold.Invalid, string(s.g.cfg.Self),
			"it was started with other managers or times than %s: give all of them the same --peers, --ttl, --epsilon, --drift and --longest-lease", r.GetFrom()))
	}
	from, request, err := councilwire.ToRequest(r)
	if err != nil {
		return nil, wire.FromError(err)
	}
	answer := s.g.council.asked(from, request)
	if answer == nil {
		return nil, wire.FromError(leasehold.Errorf(opCouncil, leasehold.Invalid, string(s.g.cfg.Self), "%s is not another manager of its group", from))
	}
	s.g.told.Store(int64(s.g.cfg.Clock.Now()))
	s.g.leader.Store(uint64(Peer{Manager: from}.id()))
	s.g.cfg.Hear(appointment.Leads{Manager: from, Term: request.Term})
	return councilwire.FromResponse(answer), nil
}
