package manager

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Usage is how much there is of something that a manager has only so much of.
type Usage struct {
	What       string // in two or three words: "open files"
	Used, Most uint64
}

// describe fills in what a manager knows about itself alone, whoever leads. It is the
// last that is done for an answer, so that the clocks are read shortly before the caller
// reads its own.
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

// usages is how much is in use of all that there is only so much of.
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
