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
	// upkeepEvery is the interval of upkeep. Without work it costs microseconds.
	upkeepEvery = time.Second
	// tidyEvery is the minimum interval of compactions when space is low. More frequent
	// compactions would break reads of tables.
	tidyEvery = 5 * time.Second
	// complainEvery limits the log of missing space.
	complainEvery = time.Minute

	// The file is defragmented when at least defragLeast bytes and more than half of it are
	// free. This blocks reads and writes for about a second per 200 MB of content: with more
	// content than defragMost it waits for the next start.
	defragEvery = 10 * time.Minute
	defragLeast = 64 << 20
	defragMost  = 128 << 20
)

// upkeep performs the operator's tasks of etcd until the context ends.
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

// someTime draws a duration between d and twice d, so that the members of a group do not work at the
// same time.
func someTime(d time.Duration) time.Duration { return d + rand.N(d) } //nolint:gosec // for a pause

// promoteLearners promotes members that have caught up to voters. Etcd rejects the others. Only the
// leader tries.
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
			m.cfg.Logger.Info("etcd member has caught up, and votes from now on", "member", one.Name, "id", one.ID.String())
		}
	}
}

// keepRoom frees space when little is left, by compaction and defragmentation. It also disarms
// etcd's alarm for a used-up quota, which rejects all writes.
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
		m.cfg.Logger.Warn("the quota was used up, and space is available again", "error", err)
	}
}

// noSpace returns this member's alarm for a used-up quota, if there is one.
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
	m.cfg.Logger.Error("the store is full, and no leases are granted: delete namespaces, or start with a larger quota",
		slog.Int64("used", b.SizeInUse()), slog.Int64("file", b.Size()), slog.Int64("quota", m.cfg.Quota), slog.Any("error", err))
}

// makeRoom removes old revisions and, if that frees enough, defragments the file.
func (m *Embedded) makeRoom(ctx context.Context) error {
	s := m.server.Server
	asking, cancel := m.db.request(ctx)
	defer cancel()
	if rev := s.KV().Rev(); rev > s.KV().FirstRev() {
		if _, err := m.db.client.Compact(asking, rev, clientv3.WithCompactPhysical()); err != nil {
			return err
		}
	}
	s.KV().Commit() // updates the sizes
	used := s.Backend().SizeInUse()
	if s.Backend().Size() <= m.db.room.mostSize() || used+used/20 > m.db.room.mostUsed() {
		return nil // no need, or too little gain
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
	m.cfg.Logger.Info("etcd's file was defragmented",
		slog.Int64("before", size), slog.Int64("after", b.Size()), slog.Duration("took", time.Since(began)), slog.Any("error", err))
}

// A room tracks the free part of a quota. It keeps a reserve for essential writes: if tables and
// their history used it up, a leader could not renew its record, and all leases would end.
//
// Its methods are safe for concurrent use.
type room struct {
	file  func() backend.Backend // changes after a defragmentation
	quota int64

	mu         sync.Mutex
	size, used int64 // at the last update
	since      int64 // bytes admitted since then
}

// etcd rejects every write when the file reaches the quota, free pages included. Growing writes are
// rejected earlier, when this much is used, or the file has the size of mostSize.
func (r *room) mostUsed() int64 { return r.quota / 10 * 9 }
func (r *room) mostSize() int64 { return r.quota / 20 * 19 }

// tight reports whether growing writes are rejected.
func (r *room) tight() bool {
	b := r.file()
	return b.SizeInUse() > r.mostUsed() || b.Size() > r.mostSize()
}

// admit accepts a write of so many bytes, or returns an error. The file's sizes are updated only
// every tenth of a second; in between admit counts itself.
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
			"write rejected: %d bytes of the quota of %d are in use, and the rest is reserved for the leader record; delete namespaces, or start with a larger quota",
			used+r.since, r.quota)
	}
	r.since += int64(bytes)
	return nil
}

// Space returns the used bytes of the member's quota, and the limit for growing writes. It is safe
// for concurrent use, and does not block.
func (m *Embedded) Space() (used, most int64) {
	r := m.db.room
	b := r.file()
	used, most = b.SizeInUse(), r.mostUsed()
	if b.Size()-r.mostSize() > used-most { // free pages count, too, once the file is large
		used, most = b.Size(), r.mostSize()
	}
	return max(0, used), most
}

const (
	// transferTimeout is the timeout of a leadership transfer. Writes block until it completes
	// or etcd aborts it after an election timeout.
	transferTimeout = 2 * time.Second
	// transferLag is the maximum number of entries by which a transfer target may lag: it
	// catches up with these in milliseconds.
	transferLag = 64

	// The minimum pause after a transfer, so that repeated transfers leave time for writes. It
	// doubles after each consecutive failure.
	leastPause = time.Minute
	mostPause  = 32 * time.Minute
)

// StepAside transfers the leadership of etcd's group, if this member has it, to a member that
// responds and has almost all committed entries. The leading manager calls it: if one process had
// both leaderships and failed, etcd's group would be without a leader for a second or two, and the
// standbys could not take over meanwhile.
//
// It may be called often, and is usually free. After a transfer the leader's writes take a round
// trip to another process, which is small compared to the disk. A failed transfer blocks writes
// for up to a second, and is retried only after minutes.
//
// Etcd publishes the progress of members once per process. In a process with several members only
// the one that was started last can step aside.
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
		return nil // in a group of two, both are needed anyway
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
			"member %x does not take over: %w; next attempt after %v", next, err, m.aside.pause)
	}
	return nil
}

// raftStatus returns the Raft status of the member that this process started last. Etcd publishes
// no other information about the progress of members.
func raftStatus() (raft.Status, bool) {
	published, ok := expvar.Get("raft.status").(expvar.Func)
	if !ok {
		return raft.Status{}, false
	}
	status, ok := published.Value().(raft.Status)
	return status, ok
}

// successors returns the members that can take over from a leader, sorted.
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

// An aside is the state of StepAside.
type aside struct {
	mu    sync.Mutex
	last  uint64        // the target of the last transfer
	until time.Time     // no transfer before this time
	pause time.Duration // after the last transfer
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
