package manager

import "github.com/leasehold-dev/leasehold"

// A claimStage is how far the claims of a session are usable. It only advances.
type claimStage uint8

const (
	claimsOld        claimStage = iota // no message of this leader acknowledged: a message in flight may change what the session has
	claimsExact                        // acknowledges a message of this leader
	claimsReconciled                   // exact, and compared with the table
)

// A resumption is the decision on the suspended leases that a session claims (see restored.go).
type resumption uint8

const (
	notResumed     resumption = iota // no such claims, or they were recalled
	resumeDeferred                   // the reply waits until no other owner can hold them
	resumed                          // they are resumed
)

// claims is what the newest request of a session reports that it holds, and how far it was processed.
type claims struct {
	leases []leasehold.Lease
	stage  claimStage
	// suspended: the newest request claims leases past their deadline.
	suspended bool
	// valid: its leases were valid in a request that acknowledges this leader, so this leader has renewed them.
	valid      bool
	resumption resumption
	// resumedUpTo is the newest generation among the leases that were ever resumed, in any term; 0 if there is
	// none.
	resumedUpTo leasehold.Generation
}

// exact reports whether the session has acknowledged a message of this leader.
func (c *claims) exact() bool { return c.stage >= claimsExact }

// reconciled reports whether the claims were compared with the table.
func (c *claims) reconciled() bool { return c.stage == claimsReconciled }

// deferred reports whether the reply to the session is deferred.
func (c *claims) deferred() bool { return c.resumption == resumeDeferred }

// undefer ends a deferral: the leases are resumed.
func (c *claims) undefer() {
	if c.deferred() {
		c.resumption = resumed
	}
}

// resumable reports whether the session claims suspended leases of earlier leaders.
func (c *claims) resumable() bool { return c.suspended && !c.valid }
