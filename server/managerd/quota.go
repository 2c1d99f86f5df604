package managerd

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// maxQuota bounds --quota. What is stored is copied as a whole to a member that
// joins, and read as a whole by whoever restores it.
const maxQuota = 64 << 30

// validateQuota reads how large the embedded store may grow.
func (m *ManagerSettings) validateQuota() error {
	n, err := cli.ParseBytes(m.quota)
	if err != nil {
		return fmt.Errorf("%s: %w", m.origin("quota"), err)
	}
	if n < etcd.MinQuota || n > maxQuota {
		return fmt.Errorf("%s %s: want 16MiB to 64GiB", m.origin("quota"), m.quota)
	}
	m.Quota = n
	return nil
}
