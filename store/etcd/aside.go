package etcd

import (
	"context"

	"github.com/leasehold-dev/leasehold"
)

// StepAside lets another member lead etcd's own group, if this one does and
// there is another that can. The manager that leads calls it: were its process
// to die, the group would otherwise be without a leader itself for a second or
// two, and the standbys could not take over meanwhile.
//
// It costs a round trip of the leader's writes to another process, which is
// little beside the disk.
func (m *Embedded) StepAside(ctx context.Context) error {
	s := m.server.Server
	if s.Leader() != s.MemberID() || len(s.Cluster().Members()) < 3 {
		return nil // of two, neither can do without the other
	}
	members, err := m.Members(ctx)
	if err != nil {
		return err
	}
	for _, one := range members {
		if one.ID == uint64(s.MemberID()) || one.Learner || !one.Healthy {
			continue
		}
		asking, cancel := m.db.request(ctx)
		err := s.MoveLeader(asking, s.Lead(), one.ID)
		cancel()
		if err != nil {
			return leasehold.Errorf("step aside", leasehold.Unavailable, m.cfg.Name, "%s does not take over: %w", one.Name, err)
		}
		return nil
	}
	return nil
}
