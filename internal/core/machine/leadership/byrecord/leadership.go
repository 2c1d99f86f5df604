package byrecord

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A role is the state of a manager in the election.
type role uint8

const (
	standby   role = iota // it watches the leader, and may campaign
	leading               // it renews the record
	yielding              // it has stepped down because of slow writes, and writes its resignation
	resigning             // it has stepped down for good, and writes its resignation
	resigned              // the resignation is in the store, or another manager leads
)

// leadership is this manager's own role and authority.
type leadership struct {
	role      role
	term      leasehold.Term // last term in which it led
	until     mono.Instant   // end of its authority
	lapsed    bool           // the authority had expired at the last check
	nextRenew mono.Instant
	checked   mono.Instant // last confirmation of the leadership
}

// resigns reports whether the manager has resigned for good.
func (l *leadership) resigns() bool { return l.role >= resigning }
