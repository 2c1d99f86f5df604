package owner

import "github.com/leasehold-dev/leasehold"

// A predecessor is the session that has our name.
type predecessor struct {
	asked leasehold.Session // whose process we have asked the shell about
	gone  leasehold.Session // it is proven that its process has ended
}
