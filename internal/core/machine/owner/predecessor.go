package owner

import "github.com/leasehold-dev/leasehold"

// predecessor is the session that had the owner's name before.
type predecessor struct {
	asked leasehold.Session // FindPredecessor was emitted for it
	gone  leasehold.Session // its process has ended
}
