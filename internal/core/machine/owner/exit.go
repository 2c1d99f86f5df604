package owner

import "github.com/leasehold-dev/leasehold/internal/core/mono"

// A partStage says how far we are with moving all state away. It only advances.
type partStage uint8

const (
	notParting partStage = iota
	parting              // the leader is asked to move everything away
	parted               // nothing is left that could be moved
)

// A leaveStage says how far we are with ending the session. It only advances.
type leaveStage uint8

const (
	notLeaving leaveStage = iota
	leaving               // all leases are given back, and the goodbye is sent until it is answered
	left                  // the session is over
)

// An exit says how far we are with leaving. Parting comes first, but leaving does not wait for it.
type exit struct {
	part    partStage
	leave   leaveStage
	leaveBy mono.Instant // when to go without an answer; 0 if no goodbye was sent
}
