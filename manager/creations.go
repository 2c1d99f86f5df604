package manager

import (
	"context"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// creations are the calls of CreateNamespace that wait until their namespace is served. Touched only on the driver's
// goroutine.
type creations map[leasehold.Namespace][]chan struct{}

// awaitServed waits until a new namespace is served, so that a request right after its creation does not fail. It
// returns early if that takes longer than reading the table.
func (m *Manager) awaitServed(ctx context.Context, ns leasehold.Namespace) {
	served := make(chan struct{})
	err := m.driver.Do(ctx, func(now mono.Instant) {
		m.creations[ns] = append(m.creations[ns], served)
		m.creations.check(m, now)
	})
	if err != nil {
		return
	}
	select {
	case <-served:
	case <-ctx.Done():
	case <-m.ctx.Done():
	}
}

// check ends the waiting calls whose namespace is not being read. It runs at the end of every step.
func (c creations) check(m *Manager, now mono.Instant) {
	for ns, waiting := range c {
		if m.reads(now, ns) {
			continue
		}
		for _, served := range waiting {
			close(served)
		}
		delete(c, ns)
	}
}

// reads reports whether this leader is reading the table of a namespace.
func (m *Manager) reads(now mono.Instant, ns leasehold.Namespace) bool {
	catalog := m.node.Catalog()
	return m.node.Leads(now) && catalog != nil && catalog.Find(ns) != nil &&
		m.node.Manager(ns) == nil && m.node.Problem(ns) == nil && m.node.Census(ns) == nil
}
