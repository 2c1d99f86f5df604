package memcatalog

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/flease"
)

// manager names the manager that has a number, or gives the number if it is none of
// the group.
func (c *Config) manager(id flease.ID) string {
	for _, p := range c.Peers {
		if p.id() == id {
			return string(p.Manager)
		}
	}
	return fmt.Sprintf("an unknown manager (%d)", id)
}
