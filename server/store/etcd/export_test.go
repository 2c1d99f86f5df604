package etcd

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
)

// Under returns a store of its own, under a prefix, on a member that goes on
// when the store is closed.
func (m *Embedded) Under(prefix string) *Store {
	db := &database{client: m.db.client, prefix: prefix, room: m.db.room, ended: m.db.ended, close: func() error { return nil }}
	return &Store{kv.New(db, kv.Config{})}
}

// KnowsOthers reports whether etcd's published status is that of this member.
func (m *Embedded) KnowsOthers() bool {
	status, ok := raftStatus()
	return ok && status.ID == uint64(m.server.Server.MemberID())
}

// Misses reports whether a member that leads has not heard of another for a while.
func (m *Embedded) Misses(other string) bool {
	status, ok := raftStatus()
	for _, one := range m.server.Server.Cluster().Members() {
		if one.Name == other {
			return ok && !status.Progress[uint64(one.ID)].RecentActive
		}
	}
	return false
}

func (m *Embedded) Leads() bool { return m.server.Server.Leader() == m.server.Server.MemberID() }

// TakeLead makes a member lead etcd's group.
func (m *Embedded) TakeLead(ctx context.Context) error {
	s := m.server.Server
	if m.Leads() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	return s.MoveLeader(ctx, s.Lead(), uint64(s.MemberID()))
}

// EndPause lets a member step aside at once.
func (m *Embedded) EndPause() {
	m.aside.mu.Lock()
	defer m.aside.mu.Unlock()
	m.aside.until = time.Time{}
}

// Config is what the member was started with.
func (m *Embedded) Config() EmbedConfig { return m.cfg }

// Uncompacted is what [Open] warns by.
func (m *Embedded) Uncompacted(ctx context.Context) int64 { return m.db.uncompacted(ctx) }

// Compact removes all old revisions.
func (m *Embedded) Compact(ctx context.Context) error {
	_, err := m.db.client.Compact(ctx, m.server.Server.KV().Rev())
	return err
}
