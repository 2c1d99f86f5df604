package manager

import "github.com/leasehold-dev/leasehold/internal/core/mono"

// A renewal says when a session was last renewed, and when its leases end if it stays silent. No deadline
// is moved up while the session lives: what was promised stays promised.
type renewal struct {
	// heard is when its newest request was accepted.
	lastRequest mono.Instant
	// until is when the leases of a silent peer have certainly ended.
	until mono.Instant
	// due is its deadline before an outage moved it (see outage.go); 0 if none did, or it has
	// been heard since. It is never after until.
	due mono.Instant
}

// overdue reports whether an outage has given a peer more time, and its deadline has passed.
func (r *renewal) overdue(now mono.Instant) bool { return r.due != 0 && now >= r.due }

// silent reports whether a peer is past its deadline: it is kept for as long as nobody else could
// take its ranges.
func (r *renewal) silent(now mono.Instant) bool { return now >= r.until || r.overdue(now) }
