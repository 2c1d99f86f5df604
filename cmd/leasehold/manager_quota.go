package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/store/etcd"
)

// maxQuota bounds --quota. What is stored is copied as a whole to a member that
// joins, and read as a whole by whoever restores it.
const maxQuota = 64 << 30

// validateQuota reads how large the embedded store may grow.
func (m *managerSettings) validateQuota() error {
	n, err := parseBytes(m.quota)
	if err != nil {
		return fmt.Errorf("%s: %w", m.origin("quota"), err)
	}
	if n < etcd.MinQuota || n > maxQuota {
		return fmt.Errorf("%s %s: want 16MiB to 64GiB", m.origin("quota"), m.quota)
	}
	m.Quota = n
	return nil
}

// parseBytes reads a number of bytes, such as 1048576, 512MiB or 8GiB.
func parseBytes(text string) (int64, error) {
	units := []struct {
		name  string
		bytes int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"", 1}}
	for _, unit := range units {
		number, found := strings.CutSuffix(text, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 63)
		if err != nil || int64(n) > math.MaxInt64/unit.bytes {
			break
		}
		return int64(n) * unit.bytes, nil
	}
	return 0, fmt.Errorf("%q: want a number of bytes such as 512MiB or 8GiB", text)
}
