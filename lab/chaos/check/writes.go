package check

import "github.com/leasehold-dev/leasehold"

// Accepted records a write that a database with fencing accepted, in the order of the database (I9).
func (b *Book) Accepted(resource string, g leasehold.Generation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n.Writes++
	if newest := b.fences[resource]; g < newest {
		b.add("I9", "an older token was accepted after a newer one", "a write of %s with generation %d was accepted after one with %d", resource, g, newest)
	}
	b.fences[resource] = max(b.fences[resource], g)
}

// Refused records the number of writes that a database has rejected.
func (b *Book) Refused(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n.Refused += n
}
