package etcd

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
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

// complain says now and then that there is no room.
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

// defragment rewrites the file if that is worthwhile.
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
