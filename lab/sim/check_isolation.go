package sim

import "github.com/leasehold-dev/leasehold/internal/core/table"

// checkHome is I10: what is committed in a namespace concerns only those who
// belong to it. Messages go astray between namespaces all the time here.
func (o *oracle) checkHome(s *space, c *table.Change) {
	o.checks[I10Isolation]++
	home := s.home[c.Holder.Session]
	if home == nil {
		o.world.Violated(I10Isolation, "%s: %v names a session that never was in this namespace", s.name, c)
		return
	}
	if name := c.Holder.Owner; name[0] != 'a'+byte(s.index) {
		o.world.Violated(I10Isolation, "%s: %v names an owner of another namespace", s.name, c)
	}
}
