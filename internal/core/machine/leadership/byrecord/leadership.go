package byrecord

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A role is a manager's part in the election.
type role uint8

const (
	standby   role = iota // it watches the leader, and may become a candidate
	leading               // it renews the record
	yielding              // it has stepped down since it limps, and writes that it has resigned
	resigning             // it has stepped down for good, and writes that it has resigned
	resigned              // the store knows that, or another manager leads
)

// leadership is our own part: whether we lead, and until when.
type leadership struct {
	role      role
	term      leasehold.Term // the last that we led in
	until     mono.Instant   // our authority
	lapsed    bool           // it had run out when we last looked
	nextRenew mono.Instant
	checked   mono.Instant // when our leadership was last confirmed
}

// resigns reports whether we have given up leadership for good.
func (l *leadership) resigns() bool { return l.role >= resigning }
