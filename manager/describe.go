package manager

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Usage is the use of a limited resource.
type Usage struct {
	What       string // in two or three words: "open files"
	Used, Most uint64
}

// describe fills in this manager's own part of a status. It comes last, so that the clocks are
// read as close as possible to when the caller reads its own.
func (m *Manager) describe(answer *leaseholdv1.GetStatusResponse) {
	answer.Usages = nil
	for _, u := range m.usages() {
		answer.Usages = append(answer.Usages, &leaseholdv1.Usage{What: u.What, Used: u.Used, Most: u.Most})
	}
	answer.Http = m.cfg.HTTP
	now, wall := m.clock.Both()
	answer.Clocks = &leaseholdv1.Clocks{Wall: timestamppb.New(wall), Monotonic: int64(now), Drift: m.cfg.Drift}
	if m.cfg.Peers != nil {
		answer.Clocks.Epsilon = int64(m.cfg.Peers.Epsilon)
	}
}

// usages returns the use of all limited resources.
func (m *Manager) usages() []Usage {
	all := []Usage{
		{"owners connected", uint64(m.owners.Count()), uint64(m.cfg.MaxStreams)},
		{"lookups connected", uint64(m.lookups.Count()), uint64(m.cfg.MaxStreams)},
	}
	if m.cfg.Usage != nil {
		all = append(all, m.cfg.Usage()...)
	}
	return all
}
