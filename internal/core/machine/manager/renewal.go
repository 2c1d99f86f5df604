package manager

import "github.com/leasehold-dev/leasehold/internal/core/mono"

// A renewal is the last request and the deadline of a session. A deadline never becomes earlier while the session
// lives, because its lease time was promised.
type renewal struct {
	// lastRequest is when its newest request was accepted.
	lastRequest mono.Instant
	// until is when the leases of a silent peer have certainly expired.
	until mono.Instant
	// due is its deadline before an outage extended it (see outage.go); 0 if none did, or after its next request.
	// It is never after until.
	due mono.Instant
}

// overdue reports whether an outage has given a peer more time, and its original deadline has passed.
func (r *renewal) overdue(now mono.Instant) bool { return r.due != 0 && now >= r.due }

// silent reports whether a peer is past its deadline: it is kept only while no other owner could take its ranges.
func (r *renewal) silent(now mono.Instant) bool { return now >= r.until || r.overdue(now) }
