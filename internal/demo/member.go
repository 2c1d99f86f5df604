package demo

import "github.com/leasehold-dev/leasehold/internal/child"

// A member is a manager or an owner.
type member struct {
	child.Child
	addr string // where a manager listens; owners choose anew each time
}
