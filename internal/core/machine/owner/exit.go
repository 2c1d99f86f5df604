package owner

import "github.com/leasehold-dev/leasehold/internal/core/mono"

// A partStage is the stage of moving all leases to other owners. It only advances.
type partStage uint8

const (
	notParting partStage = iota
	parting              // requests ask the leader to move all leases
	parted               // no lease is left that can be moved
)

// A leaveStage is the stage of ending the session. It only advances.
type leaveStage uint8

const (
	notLeaving leaveStage = iota
	leaving               // all leases are released, and requests with Leaving are sent until the leader acknowledges
	left                  // the session has ended
)

// exit is the progress of parting and leaving. Leave does not wait for parting to finish.
type exit struct {
	part    partStage
	leave   leaveStage
	leaveBy mono.Instant // when to leave without an acknowledgement; 0 before the first request with Leaving
}
