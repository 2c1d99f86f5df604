package manager

import (
	"slices"
	"sync"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// leadership is a copy of the machine's view of the leader, for the status, health checks,
// metrics and watchers. No decision depends on it.
type leadership struct {
	started mono.Instant // of this manager's current leadership; touched only within a step
	counted uint64       // the newest term with a leader; touched only within a step

	mu     sync.Mutex
	isSelf bool
	leader storage.ManagerID
	term   uint64
	ready  bool
	ended  chan struct{} // closed when this manager ceases to lead; nil without a reader
	// changes are the changes of leadership that this manager observed, oldest first. Those before
	// its start are the leader's.
	changes []*leaseholdv1.Leadership
}

// maxLeaderships bounds the recorded changes of leadership.
const maxLeaderships = 64

func (l *leadership) start(now mono.Instant) { l.started = now }

func (l *leadership) since(now mono.Instant) time.Duration { return now.Sub(l.started) }

// check copies the machine's view, and publishes the differences. It runs at the end of every
// step.
func (l *leadership) check(m *Manager, now mono.Instant) {
	isSelf := m.node.Leads(now)
	leader := m.node.Living(now)
	_, term := m.node.Leader()
	ready := leader != "" && (!isSelf || m.node.Catalog() != nil) && (m.group == nil || m.group.Ready())
	l.mu.Lock()
	elected := leader != "" && uint64(term) != l.counted
	if elected {
		l.counted = uint64(term)
	}
	changed := isSelf != l.isSelf || leader != l.leader || uint64(term) != l.term
	readiness := ready != l.ready
	l.isSelf, l.leader, l.term, l.ready = isSelf, leader, uint64(term), ready
	if changed {
		l.changes = append(l.changes, &leaseholdv1.Leadership{At: timestamppb.Now(), Leader: string(leader), Term: uint64(term)})
		l.changes = l.changes[max(0, len(l.changes)-maxLeaderships):]
	}
	if !isSelf && l.ended != nil {
		close(l.ended)
		l.ended = nil
	}
	l.mu.Unlock()
	if elected {
		m.metrics.countLeader()
	}
	if changed {
		l.log(m, isSelf, leader, uint64(term))
		m.events.publishLeader(protocol.NotLeader{Term: term, Leader: leader})
	}
	if readiness {
		status := healthpb.HealthCheckResponse_NOT_SERVING
		if ready {
			status = healthpb.HealthCheckResponse_SERVING
		}
		m.health.SetServingStatus("", status)
	}
}

func (l *leadership) log(m *Manager, isSelf bool, leader storage.ManagerID, term uint64) {
	switch {
	case isSelf:
		m.log.Info("this manager leads", "term", term)
	case leader != "":
		m.log.Info("this manager stands by", "leader", leader, "term", term)
	default:
		m.log.Info("no manager leads", "term", term)
	}
}

// lost returns a channel that is closed when this manager ceases to lead; if it does not lead
// now, the next time.
func (l *leadership) lost() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.ended = make(chan struct{})
	}
	return l.ended
}

// event returns the current leader as an event.
func (l *leadership) event() *leaseholdv1.WatchResponse {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := protocol.NotLeader{Term: leasehold.Term(l.term), Leader: l.leader}
	return &leaseholdv1.WatchResponse{
		At: timestamppb.Now(), Event: &leaseholdv1.WatchResponse_Leader{Leader: wire.FromNotLeader(n)},
	}
}

// gauges returns whether this manager leads, whether any manager does, whether this manager can
// serve, and the newest term.
func (l *leadership) gauges() (isSelf, known, ready bool, term uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isSelf, l.leader != "", l.ready, l.term
}

// addOlder prepends the leader's record of changes, newest first, as far as it is older than this
// manager's own. So the record survives a rolling restart. Terms rise; times are those of the
// wall clocks of the managers that observed the changes.
func (l *leadership) addOlder(theirs []*leaseholdv1.Leadership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.changes) == 0 {
		return
	}
	own, first := l.changes, l.changes[0]
	var older []*leaseholdv1.Leadership
	for _, t := range slices.Backward(theirs[:min(maxLeaderships, len(theirs))]) {
		if t.GetTerm() < first.GetTerm() || t.GetTerm() == first.GetTerm() && t.GetAt().AsTime().Before(first.GetAt().AsTime()) {
			older = append(older, t)
		}
	}
	if len(older) == 0 {
		return
	}
	if last := older[len(older)-1]; last.GetTerm() == first.GetTerm() && last.GetLeader() == first.GetLeader() {
		own = own[1:] // the same change, observed later
	}
	l.changes = slices.Concat(older, own)
	l.changes = l.changes[max(0, len(l.changes)-maxLeaderships):]
}

// history returns the changes of leadership, newest first. The messages are immutable.
func (l *leadership) history() []*leaseholdv1.Leadership {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := slices.Clone(l.changes)
	slices.Reverse(out)
	return out
}

// isLeader reports whether this manager leads.
func (l *leadership) isLeader() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isSelf
}

// readiness reports whether this manager can serve, and returns the leader.
func (l *leadership) readiness() (bool, storage.ManagerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready, l.leader
}
