package manager

import "github.com/leasehold-dev/leasehold"

// A claimStage says how far the claims of a session may be relied on. It only advances.
type claimStage uint8

const (
	claimsOld        claimStage = iota // sent before a message of ours arrived: a message under way may change what it has
	claimsExact                        // reflects a message of ours
	claimsReconciled                   // exact, and compared with the table
)

// A resumption is what was decided on the suspended leases that a session claims (see restored.go).
type resumption uint8

const (
	notResumed     resumption = iota // it has claimed none, or they were recalled
	resumeDeferred                   // it is answered when no other owner can hold them
	resumed                          // they go on
)

// claims is what the newest request of a session says that it holds, and how far that was acted on.
type claims struct {
	leases []leasehold.Lease
	stage  claimStage
	// suspended: the newest request claims leases that have reached their deadline.
	suspended bool
	// valid: since it has heard us, its leases have been valid once: what it has is from us.
	valid      bool
	resumption resumption
	// resumedUpTo is the newest generation among the leases that it has resumed once, in any
	// term; 0 if there is none.
	resumedUpTo leasehold.Generation
}

// exact reports whether the session has answered a message of ours.
func (c *claims) exact() bool { return c.stage >= claimsExact }

// reconciled reports whether the claims were compared with the table.
func (c *claims) reconciled() bool { return c.stage == claimsReconciled }

// deferred reports whether the session is answered later.
func (c *claims) deferred() bool { return c.resumption == resumeDeferred }

// undefer ends a deferral: the leases go on.
func (c *claims) undefer() {
	if c.deferred() {
		c.resumption = resumed
	}
}

// resumable reports whether the session claims suspended leases from leaders before us.
func (c *claims) resumable() bool { return c.suspended && !c.valid }
