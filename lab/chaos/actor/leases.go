package actor

import (
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// forever is leases switched off: what was once checked successfully is so ever
// after. It may be used from many goroutines at once.
type forever struct {
	owner.Checker

	mu  sync.Mutex
	had map[leasehold.Key]owner.Lease
}

func (f *forever) Check(key leasehold.Key) (owner.Lease, bool) {
	lease, ok := f.Checker.Check(key)
	f.mu.Lock()
	defer f.mu.Unlock()
	if ok {
		f.had[key] = lease
	}
	lease, ok = f.had[key]
	return lease, ok
}

func (*forever) Held(owner.Lease) bool { return true }
