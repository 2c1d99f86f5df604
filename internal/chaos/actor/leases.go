package actor

import (
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// Leases is what an owner asks of the library.
type Leases interface {
	Check(key leasehold.Key) (owner.Lease, bool)
	Held(lease owner.Lease) bool
}

// forever is leases switched off: what was once checked successfully is so ever
// after. It may be used from many goroutines at once.
type forever struct {
	leases Leases

	mu  sync.Mutex
	had map[leasehold.Key]owner.Lease
}

func (f *forever) Check(key leasehold.Key) (owner.Lease, bool) {
	lease, ok := f.leases.Check(key)
	f.mu.Lock()
	defer f.mu.Unlock()
	if ok {
		f.had[key] = lease
	}
	lease, ok = f.had[key]
	return lease, ok
}

func (*forever) Held(owner.Lease) bool { return true }
