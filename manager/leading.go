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

// leading follows who leads, for people, health checks and those who watch.
// Nothing is decided by it.
type leading struct {
	begun mono.Instant // when we last began to lead; touched only within a step

	mu    sync.Mutex
	ours  bool
	id    storage.ManagerID
	term  uint64
	ready bool
	// counted is the newest term of a leader that we have heard of; touched only
	// within a step.
	counted uint64
	ended   chan struct{} // closed when we cease to lead; nil while nobody asks
	// before is who has led so far, the oldest first, as we have seen it, or been told by
	// who led when we were started: for people to read.
	before []*leaseholdv1.Leadership
}

// mostLeaderships is how many changes of leadership are remembered.
const mostLeaderships = 64

func (l *leading) begin(now mono.Instant) { l.begun = now }

func (l *leading) since(now mono.Instant) time.Duration { return now.Sub(l.begun) }

// check compares what the machine knows with what was last known. It runs
// at the end of every step.
func (l *leading) check(m *Manager, now mono.Instant) {
	ours := m.node.Leads(now)
	id := m.node.Living(now)
	_, term := m.node.Leader()
	ready := id != "" && (!ours || m.node.Catalog() != nil) && (m.group == nil || m.group.Informed())
	l.mu.Lock()
	elected := id != "" && uint64(term) != l.counted
	if elected {
		l.counted = uint64(term)
	}
	changed := ours != l.ours || id != l.id || uint64(term) != l.term
	readiness := ready != l.ready
	l.ours, l.id, l.term, l.ready = ours, id, uint64(term), ready
	if changed {
		l.before = append(l.before, &leaseholdv1.Leadership{At: timestamppb.Now(), Leader: string(id), Term: uint64(term)})
		l.before = l.before[max(0, len(l.before)-mostLeaderships):]
	}
	if !ours && l.ended != nil {
		close(l.ended)
		l.ended = nil
	}
	l.mu.Unlock()
	if elected {
		m.metrics.led()
	}
	if changed {
		l.log(m, ours, id, uint64(term))
		m.events.led(protocol.NotLeader{Term: term, Leader: id})
	}
	if readiness {
		status := healthpb.HealthCheckResponse_NOT_SERVING
		if ready {
			status = healthpb.HealthCheckResponse_SERVING
		}
		m.health.SetServingStatus("", status)
	}
}

func (l *leading) log(m *Manager, ours bool, id storage.ManagerID, term uint64) {
	switch {
	case ours:
		m.log.Info("this manager leads", "term", term)
	case id != "":
		m.log.Info("this manager stands by", "leader", id, "term", term)
	default:
		m.log.Info("no manager leads", "term", term)
	}
}

// lost is closed when we cease to lead; if we do not lead now, the next time.
func (l *leading) lost() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.ended = make(chan struct{})
	}
	return l.ended
}

// event says who leads.
func (l *leading) event() *leaseholdv1.WatchResponse {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := protocol.NotLeader{Term: leasehold.Term(l.term), Leader: l.id}
	return &leaseholdv1.WatchResponse{
		At: timestamppb.Now(), Event: &leaseholdv1.WatchResponse_Leader{Leader: wire.FromNotLeader(n)},
	}
}

// figures returns whether we lead, whether anybody does, whether we can serve, and the
// newest term.
func (l *leading) figures() (ours, known, ready bool, term uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ours, l.id != "", l.ready, l.term
}

// learn takes up who has led before we have seen any of it, as the leader remembers it,
// the newest first. So that is not forgotten while one manager after the other is
// restarted. Terms rise; times are those of the wall clocks that have seen them.
func (l *leading) learn(theirs []*leaseholdv1.Leadership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.before) == 0 {
		return
	}
	ours, first := l.before, l.before[0]
	var older []*leaseholdv1.Leadership
	for _, t := range slices.Backward(theirs[:min(mostLeaderships, len(theirs))]) {
		if t.GetTerm() < first.GetTerm() || t.GetTerm() == first.GetTerm() && t.GetAt().AsTime().Before(first.GetAt().AsTime()) {
			older = append(older, t)
		}
	}
	if len(older) == 0 {
		return
	}
	if last := older[len(older)-1]; last.GetTerm() == first.GetTerm() && last.GetLeader() == first.GetLeader() {
		ours = ours[1:] // it led before we saw it
	}
	l.before = slices.Concat(older, ours)
	l.before = l.before[max(0, len(l.before)-mostLeaderships):]
}

// leaderships returns who has led, the newest first. The messages are never changed.
func (l *leading) leaderships() []*leaseholdv1.Leadership {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := slices.Clone(l.before)
	slices.Reverse(out)
	return out
}

// are reports whether we lead.
func (l *leading) are() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ours
}

// readiness returns whether we can serve, and who leads.
func (l *leading) readiness() (bool, storage.ManagerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready, l.id
}
