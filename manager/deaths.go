package manager

import (
	"context"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const opDeath = "report death"

// deaths are the death notices that wait for the machine's reply.
type deaths struct {
	mu      sync.Mutex
	newest  uint64
	replies map[uint64]chan<- deathReply
}

// A deathReply is the machine's reply to a notice: an outcome, or a redirect if this manager does not lead.
type deathReply struct {
	outcome   protocol.DeathOutcome
	notLeader *protocol.NotLeader // nil: the outcome is set
}

func newDeaths() *deaths { return &deaths{replies: make(map[uint64]chan<- deathReply)} }

// begin returns the number of a new notice, and the channel of its reply.
func (d *deaths) begin() (uint64, <-chan deathReply) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.newest++
	reply := make(chan deathReply, 1)
	d.replies[d.newest] = reply
	return d.newest, reply
}

// resolve passes the machine's reply on, once. It runs within a step of the machine.
func (d *deaths) resolve(id uint64, r deathReply) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if reply := d.replies[id]; reply != nil {
		delete(d.replies, id)
		reply <- r
	}
}

func (d *deaths) end(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.replies, id)
}

// ReportDeath ends a session whose process has ended.
func (s *ownerService) ReportDeath(ctx context.Context, r *leaseholdv1.ReportDeathRequest) (*leaseholdv1.ReportDeathResponse, error) {
	if err := wire.CheckVersion(r.GetVersion()); err != nil {
		return nil, wire.FromError(err)
	}
	notice, err := wire.ToDeathNotice(r)
	if err != nil {
		return nil, wire.FromError(err)
	}
	reply, err := s.m.reportDeath(ctx, notice)
	if err != nil {
		return nil, wire.FromError(err)
	}
	out := &leaseholdv1.ReportDeathResponse{Version: wire.Version}
	if reply.notLeader != nil {
		out.Kind = &leaseholdv1.ReportDeathResponse_NotLeader{NotLeader: wire.FromNotLeader(*reply.notLeader)}
	} else {
		out.Kind = &leaseholdv1.ReportDeathResponse_Outcome{Outcome: leaseholdv1.DeathOutcome(reply.outcome)}
	}
	return out, nil
}

// reportDeath passes a notice to the machine, and waits for the reply, which follows a commit.
func (m *Manager) reportDeath(ctx context.Context, n *protocol.DeathNotice) (deathReply, error) {
	ctx, cancel := context.WithTimeout(ctx, m.storeTimeout())
	defer cancel()
	id, replies := m.deaths.begin()
	defer m.deaths.end(id)
	m.driver.Post(ctx, managerproc.Died{ID: id, DeathNotice: n})
	select {
	case reply := <-replies:
		return reply, reply.err(n)
	case <-m.ctx.Done():
		return deathReply{}, leasehold.Errorf(opDeath, leasehold.ErrUnavailable, string(n.Owner), "the manager is closed")
	case <-ctx.Done():
		return deathReply{}, leasehold.Errorf(opDeath, leasehold.ErrUnavailable, string(n.Owner), "not committed in time: try again: %w", ctx.Err())
	}
}

// err returns the error of a reply that is neither a redirect nor an outcome of the protocol.
func (r *deathReply) err(n *protocol.DeathNotice) error {
	switch {
	case r.notLeader != nil:
		return nil
	case r.outcome == protocol.DeathRefused:
		return leasehold.Errorf(opDeath, leasehold.ErrDenied, string(n.Owner), "the token is not that of session %s", n.Session.Short())
	case r.outcome == protocol.DeathUndecided:
		return leasehold.Errorf(opDeath, leasehold.ErrUnavailable, string(n.Owner), "the leader cannot decide yet: try again")
	}
	return nil
}
