package etcd

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
)

// Under returns a separate store below a prefix. Closing it does not stop the member.
func (m *Embedded) Under(prefix string) *Store {
	db := &database{client: m.db.client, prefix: prefix, room: m.db.room, ended: m.db.ended, close: func() error { return nil }}
	return &Store{kv.New(db, kv.Config{})}
}

// KnowsOthers reports whether etcd's published status is that of this member.
func (m *Embedded) KnowsOthers() bool {
	status, ok := raftStatus()
	return ok && status.ID == uint64(m.server.Server.MemberID())
}

// Misses reports whether the leading member m has no recent contact with another one.
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

// TakeLead makes the member the leader of etcd's group.
func (m *Embedded) TakeLead(ctx context.Context) error {
	s := m.server.Server
	if m.Leads() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	return s.MoveLeader(ctx, s.Lead(), uint64(s.MemberID()))
}

// EndPause ends the backoff before the next leadership transfer.
func (m *Embedded) EndPause() {
	m.aside.mu.Lock()
	defer m.aside.mu.Unlock()
	m.aside.until = time.Time{}
}

// Config returns the configuration of the member.
func (m *Embedded) Config() EmbedConfig { return m.cfg }

// Uncompacted returns the revision count on which the warning of [Open] is based.
func (m *Embedded) Uncompacted(ctx context.Context) int64 { return m.db.uncompacted(ctx) }

// Compact removes all old revisions.
func (m *Embedded) Compact(ctx context.Context) error {
	_, err := m.db.client.Compact(ctx, m.server.Server.KV().Rev())
	return err
}
