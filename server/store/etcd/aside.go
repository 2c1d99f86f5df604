package etcd

import (
	"context"
	"expvar"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

const (
	// transferTimeout is how long a member has to take over. Nothing is written
	// until it has or, after an election timeout, etcd gives up.
	transferTimeout = 2 * time.Second
	// transferLag is by how many entries a member may be behind that is asked to
	// take over: as many as it catches up with in a moment.
	transferLag = 64

	// After a transfer there is a pause, so that members that pass the lead to
	// and fro leave time for writes. After each that fails in a row it doubles.
	leastPause = time.Minute
	mostPause  = 32 * time.Minute
)

// StepAside lets another member lead etcd's own group, if this one does and
// there is another that can: one that answers, and has almost all that was
// committed. The manager that leads calls it: were its process to die, the group
// would otherwise be without a leader itself for a second or two, and the
// standbys could not take over meanwhile.
//
// It may be called often, and mostly costs nothing. A transfer costs a round
// trip of the leader's writes to another process, which is little beside the
// disk; one that fails keeps everybody from writing for up to a second, and is
// not tried again for minutes.
//
// What etcd knows about the other members it tells only once per process. In a
// process with several members, the one that was started last can step aside.
func (m *Embedded) StepAside(ctx context.Context) error {
	s := m.server.Server
	if s.Leader() != s.MemberID() {
		return nil
	}
	m.aside.mu.Lock()
	defer m.aside.mu.Unlock()
	if time.Now().Before(m.aside.until) {
		return nil
	}
	status, ok := raftStatus()
	if !ok || status.ID != uint64(s.MemberID()) || len(status.Config.Voters.IDs()) < 3 {
		return nil // of two, neither can do without the other
	}
	next, ok := m.aside.choose(successors(&status))
	if !ok {
		return nil
	}
	moving, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	err := s.MoveLeader(moving, status.ID, next)
	m.aside.tried(time.Now(), next, err)
	if err != nil {
		return leasehold.Errorf("step aside", leasehold.ErrUnavailable, m.cfg.Name,
			"member %x does not take over: %w; next try after %v", next, err, m.aside.pause)
	}
	return nil
}

// raftStatus returns what the member that this process started last knows of
// its group. etcd publishes it, and nothing else that says who has caught up.
func raftStatus() (raft.Status, bool) {
	published, ok := expvar.Get("raft.status").(expvar.Func)
	if !ok {
		return raft.Status{}, false
	}
	status, ok := published.Value().(raft.Status)
	return status, ok
}

// successors are the members that can take over from a leader, sorted.
func successors(leader *raft.Status) []uint64 {
	var ids []uint64
	for id, p := range leader.Progress {
		able := p.RecentActive && p.State == tracker.StateReplicate && p.Match+transferLag >= leader.GetCommit()
		if id != leader.ID && !p.IsLearner && able {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// An aside remembers how stepping aside went.
type aside struct {
	mu    sync.Mutex
	last  uint64        // the member that was asked last
	until time.Time     // nobody is asked before
	pause time.Duration // after the last
}

// choose takes turns among members.
func (a *aside) choose(sorted []uint64) (uint64, bool) {
	if len(sorted) == 0 {
		return 0, false
	}
	i := slices.IndexFunc(sorted, func(id uint64) bool { return id > a.last })
	return sorted[max(i, 0)], true
}

// tried notes how it went with a member.
func (a *aside) tried(now time.Time, id uint64, err error) {
	a.last = id
	if err == nil || a.pause == 0 {
		a.pause = leastPause
	} else {
		a.pause = min(2*a.pause, mostPause)
	}
	a.until = now.Add(a.pause)
}
