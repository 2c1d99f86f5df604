package etcd

import (
	"context"
	"expvar"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"

	"github.com/leasehold-dev/leasehold"
)

const (
	// upkeepEvery is how often a member looks after itself. A look that finds
	// nothing to do costs microseconds.
	upkeepEvery = time.Second
	// tidyEvery is how often old revisions are removed while there is hardly
	// any room. More often, tables could not be read meanwhile.
	tidyEvery = 5 * time.Second
	// complainEvery is how often the log says that there is no room.
	complainEvery = time.Minute

	// The file is rewritten without its holes when it has at least defragLeast
	// bytes and more than half of them are holes. Nothing is read or written
	// meanwhile, for about a second per 200 MB of content: with more content
	// than defragMost it is left for the next start.
	defragEvery = 10 * time.Minute
	defragLeast = 64 << 20
	defragMost  = 128 << 20
)

// upkeep does what etcd leaves to its operator, until the context ends.
func (m *Embedded) upkeep(ctx context.Context) {
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	next := time.Now().Add(someTime(defragEvery))
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.done:
			return
		case <-tick.C:
		}
		m.promoteLearners(ctx)
		m.keepRoom(ctx)
		if time.Now().After(next) {
			m.defragment()
			next = time.Now().Add(someTime(defragEvery))
		}
	}
}

// someTime is between d and twice d, so that the members of a group do not
// all do the same at the same time.
func someTime(d time.Duration) time.Duration { return d + rand.N(d) } //nolint:gosec // for a pause

// promoteLearners gives members that have caught up a vote. etcd refuses it to
// those that have not. The leader alone tries.
func (m *Embedded) promoteLearners(ctx context.Context) {
	s := m.server.Server
	if s.Leader() != s.MemberID() {
		return
	}
	for _, one := range s.Cluster().Members() {
		if !one.IsLearner {
			continue
		}
		asking, cancel := m.db.request(ctx)
		_, err := m.db.client.MemberPromote(asking, uint64(one.ID))
		cancel()
		if err == nil {
			m.cfg.Logger.Info("etcd member has caught up and votes now", "member", one.Name, "id", one.ID.String())
		}
	}
}

// keepRoom makes room when there is hardly any, if old revisions or holes in
// the file take it. It also ends the state in which etcd refuses all writes
// because its quota was used up.
func (m *Embedded) keepRoom(ctx context.Context) {
	alarm := m.noSpace()
	if alarm == nil && !m.db.room.tight() {
		return
	}
	var err error
	if time.Since(m.tidied) >= tidyEvery {
		m.tidied = time.Now()
		err = m.makeRoom(ctx)
	}
	if m.db.room.tight() {
		m.complain(err)
		return
	}
	if alarm != nil {
		asking, cancel := m.db.request(ctx)
		_, err = m.db.client.AlarmDisarm(asking, (*clientv3.AlarmMember)(alarm))
		cancel()
		m.cfg.Logger.Warn("etcd had used up its quota, and has room again", "error", err)
	}
}

// noSpace returns this member's alarm that its quota is used up, if it has
// raised it.
func (m *Embedded) noSpace() *pb.AlarmMember {
	s := m.server.Server
	for _, alarm := range s.Alarms() {
		if alarm.GetAlarm() == pb.AlarmType_NOSPACE && alarm.GetMemberID() == uint64(s.MemberID()) {
			return alarm
		}
	}
	return nil
}

func (m *Embedded) complain(err error) {
	if time.Since(m.complained) < complainEvery {
		return
	}
	m.complained = time.Now()
	b := m.server.Server.Backend()
	m.cfg.Logger.Error("the store is full, and nothing new is granted: delete namespaces, or start with a larger quota",
		slog.Int64("used", b.SizeInUse()), slog.Int64("file", b.Size()), slog.Int64("quota", m.cfg.Quota), slog.Any("error", err))
}

// makeRoom removes old revisions and, if that helps, the holes they leave.
func (m *Embedded) makeRoom(ctx context.Context) error {
	s := m.server.Server
	asking, cancel := m.db.request(ctx)
	defer cancel()
	if rev := s.KV().Rev(); rev > s.KV().FirstRev() {
		if _, err := m.db.client.Compact(asking, rev, clientv3.WithCompactPhysical()); err != nil {
			return err
		}
	}
	s.KV().Commit() // so that the sizes are those after the compaction
	used := s.Backend().SizeInUse()
	if s.Backend().Size() <= m.db.room.mostSize() || used+used/20 > m.db.room.mostUsed() {
		return nil // there is no need, or too little to gain
	}
	return s.Defragment()
}

func (m *Embedded) defragment() {
	b := m.server.Server.Backend()
	size, used := b.Size(), b.SizeInUse()
	if size < defragLeast || used > size/2 || used > defragMost {
		return
	}
	began := time.Now()
	err := m.server.Server.Defragment()
	m.cfg.Logger.Info("etcd's file was rewritten without its holes",
		slog.Int64("before", size), slog.Int64("after", b.Size()), slog.Duration("took", time.Since(began)), slog.Any("error", err))
}

// A room is what is left of a quota. It keeps a reserve for what must be written
// even when there is hardly any: were it used up by tables and their history, a
// leader could not renew its record, and all leases would end.
//
// Its methods may be called from many goroutines at once.
type room struct {
	file  func() backend.Backend // another one after it was rewritten
	quota int64

	mu         sync.Mutex
	size, used int64 // as they were last seen
	since      int64 // what was admitted since they changed
}

// etcd refuses every write once the file has the size of the quota, holes
// included. Before that, nothing that grows is written when so much is in use, or
// when the file has become so large.
func (r *room) mostUsed() int64 { return r.quota / 10 * 9 }
func (r *room) mostSize() int64 { return r.quota / 20 * 19 }

// tight reports whether nothing that grows is written.
func (r *room) tight() bool {
	b := r.file()
	return b.SizeInUse() > r.mostUsed() || b.Size() > r.mostSize()
}

// admit lets so many bytes be written, or says why not. The file's sizes lag
// behind by a tenth of a second, in which much can be written: until they change
// it counts itself.
func (r *room) admit(bytes int) error {
	b := r.file()
	size, used := b.Size(), b.SizeInUse()
	r.mu.Lock()
	defer r.mu.Unlock()
	if size != r.size || used != r.used {
		r.size, r.used, r.since = size, used, 0
	}
	if used+r.since > r.mostUsed() || size+r.since > r.mostSize() {
		return leasehold.Errorf("etcd", leasehold.ErrLimit, "",
			"nothing was written: %d bytes of the quota of %d are in use, and the rest is kept for the leader record; delete namespaces, or start with a larger quota",
			used+r.since, r.quota)
	}
	r.since += int64(bytes)
	return nil
}

// Space returns how many bytes of the member's quota are in use, and how many may be
// before nothing that grows is written. It may be called from many goroutines at once,
// and does not wait.
func (m *Embedded) Space() (used, most int64) {
	r := m.db.room
	b := r.file()
	used, most = b.SizeInUse(), r.mostUsed()
	if b.Size()-r.mostSize() > used-most { // holes count too, once the file is large
		used, most = b.Size(), r.mostSize()
	}
	return max(0, used), most
}

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

func (a *aside) choose(sorted []uint64) (uint64, bool) {
	if len(sorted) == 0 {
		return 0, false
	}
	i := slices.IndexFunc(sorted, func(id uint64) bool { return id > a.last })
	return sorted[max(i, 0)], true
}

func (a *aside) tried(now time.Time, id uint64, err error) {
	a.last = id
	if err == nil || a.pause == 0 {
		a.pause = leastPause
	} else {
		a.pause = min(2*a.pause, mostPause)
	}
	a.until = now.Add(a.pause)
}
