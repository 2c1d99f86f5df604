package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

// A namedStore has an identity.
type namedStore struct {
	store.Store
	id *storage.Identity
}

func (s namedStore) Identity() storage.Identity { return *s.id }

// All managers are down for 20 s, and then have another store. If it is another cluster, it was restored from a
// backup: suspended leases end, and are reported as lost. If only the data directory differs, it may be a copy
// without a loss: leases resume, but not before a lease that is missing in an old copy would have expired.
func TestCopiedStore(t *testing.T) {
	const lease = 12 * time.Second // 10 s at the slowest clock
	for _, test := range []struct {
		name  string
		after storage.Identity
		lost  bool
		waits bool
	}{
		{"the same store", storage.Identity{Cluster: "c", Directory: "d"}, false, false},
		{"another cluster", storage.Identity{Cluster: "c2", Directory: "d"}, true, true},
		{"another directory", storage.Identity{Cluster: "c", Directory: "d2"}, false, true},
		{"an unknown store", storage.Identity{}, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				d := &diary{}
				c.logs = d
				id := storage.Identity{Cluster: "c", Directory: "d"}
				c.wrap = func(s store.Store) store.Store { return namedStore{s, &id} }
				s := c.serve(group(1))
				c.crash("m1")
				time.Sleep(20 * time.Second)
				id = test.after
				c.start("m1")
				if !test.lost {
					took := s.resumes(lease + 10*time.Second)
					if test.waits != (took >= lease) {
						t.Errorf("all keys are owned after %v", took)
					}
					return
				}
				eventually(t, time.Minute, "all keys are owned", func() bool { return complete(s.owners...) })
				time.Sleep(30 * time.Second)
				lost := endedSince(s.held, s.owners...)
				if gaps := lost.Gaps(); len(gaps) > 0 {
					t.Errorf("%v was resumed", gaps)
				}
				if silent := lost.Subtract(ranges(collectLosses(t, s.lookup, s.lsn, time.Second))); len(silent) > 0 {
					t.Errorf("%v was lost, and is not reported", silent)
				}
				if d.count("was written to another cluster") != 1 {
					t.Errorf("the reason is not logged: %q", d.lines)
				}
			})
		})
	}
}
