package manager

import (
	"context"
	"time"

	"google.golang.org/grpc/peer"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

const versionLogInterval = time.Minute

// checkVersion checks the protocol version of an owner or a lookup. It logs a version that is too far from this
// manager's: the client retries until one of them is upgraded.
func (m *Manager) checkVersion(ctx context.Context, version uint32) error {
	err := wire.CheckClient(version)
	if leasehold.KindOf(err) != leasehold.ErrStale {
		return err
	}
	if others, ok := m.versions.Allow(struct{}{}, 1); ok {
		from := ""
		if p, ok := peer.FromContext(ctx); ok {
			from = p.Addr.String()
		}
		m.log.Warn("client rejected", "from", from, "why", err, "others_before", others)
	}
	return err
}
