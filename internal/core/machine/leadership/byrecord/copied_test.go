package byrecord_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// A record that was written to another cluster proves that the store was restored from a backup. If
// the data directory is not the one in which the same manager wrote the record, it may be a backup:
// then the age of the record proves nothing.
func TestCopiedStore(t *testing.T) {
	id := func(cluster, directory string) storage.Identity {
		return storage.Identity{Cluster: cluster, Directory: directory}
	}
	const uncertain = ", uncertain"
	for _, test := range []struct {
		name          string
		leader        storage.ManagerID
		written, read storage.Identity
		witnessed     bool
		ends          string
	}{
		{name: "the same", leader: "me", written: id("c", "d"), read: id("c", "d")},
		{name: "another cluster", leader: "me", written: id("c", "d"), read: id("c2", "d"), ends: uncertain + ", restored"},
		{name: "another cluster, and the record has changed", leader: "other", witnessed: true, written: id("c", "d"), read: id("c2", "d"), ends: uncertain + ", restored"},
		{name: "another directory", leader: "me", written: id("c", "d"), read: id("c", "d2"), ends: uncertain},
		{name: "the directory of another manager", leader: "other", written: id("c", "d"), read: id("c", "d2")},
		{name: "another directory, and the record has changed", leader: "me", witnessed: true, written: id("c", "d"), read: id("c", "d2")},
		{name: "written to an unknown store", leader: "me", read: id("c", "d")},
		{name: "read from an unknown store", leader: "me", written: id("c", "d")},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := standby(t)
			rec := theirs(5, 2, 9)
			rec.Leader, rec.Store = test.leader, test.written
			if test.witnessed {
				before := rec
				before.Version, before.Beat = 4, 8
				c.step(0, byrecord.Seen{Record: before, Uptime: time.Hour, Store: test.read})
			}
			c.step(0, byrecord.Seen{Record: rec, Uptime: time.Hour, Store: test.read})
			want, lead := []string{"takeover"}, "lead in term 3 until 6.600s"
			if test.ends == uncertain+", restored" {
				want = append(want, "record copied")
			}
			if test.ends != "" {
				want = append(want, "uncertain")
				lead += fmt.Sprintf(" above %d", storage.Forgettable(leasehold.Term(3)))
			}
			c.advance(3600*ms, append(want, "swap 5 for term 3 beat 1")...)
			if c.swap.New.Store != test.read {
				t.Errorf("the record has the store %v, want %v", c.swap.New.Store, test.read)
			}
			c.step(3700*ms, done(6), "elected", lead+test.ends)
		})
	}
}

// A store that is restored into a new cluster, with the record that a standby has read: only the
// identity shows it.
func TestCopiedUnderAStandby(t *testing.T) {
	c := standby(t)
	rec := theirs(5, 2, 9)
	rec.Store.Cluster = "c"
	c.step(0, byrecord.Seen{Record: rec, Uptime: time.Hour, Store: rec.Store})
	c.step(3000*ms, byrecord.Seen{Record: rec, Uptime: time.Hour, Store: storage.Identity{Cluster: "c2"}}, "read")
	c.advance(3600*ms, "takeover", "record copied", "uncertain", "swap 5 for term 3 beat 1")
}

// A manager that was stopped for long reads the record before it campaigns: its extrapolated wall
// clock may be wrong by hours.
func TestReadsAfterAStop(t *testing.T) {
	c := standby(t)
	rec := theirs(5, 2, 9)
	rec.At = wall
	c.step(0, byrecord.Seen{Record: rec, Uptime: time.Hour, Wall: wall})
	const day = 24 * 3600 * second
	c.advance(day, "read")
	if c.wake <= day {
		t.Errorf("wake time %v, before the reply", c.wake)
	}
	const slow = 23 * 3600 // by the wall clock fewer hours have passed
	c.step(day+10*ms, byrecord.Seen{Record: rec, Uptime: time.Hour + slow*time.Second, Wall: wall + slow},
		"takeover", "uncertain", fmt.Sprintf("swap 5 for term %d beat 1", 3+slow))
	if got := c.swap.New.Floor; got != storage.Clock(wall+slow) {
		t.Errorf("floor %d, want %d", got, storage.Clock(wall+slow))
	}
}

// Another cluster is evidence for every later leader too: it is in the record, although the record
// has the new cluster.
func TestCopiedForSuccessors(t *testing.T) {
	c := standby(t)
	rec := theirs(5, 2, 9)
	rec.Store.Cluster = "c"
	here := storage.Identity{Cluster: "c2"}
	c.step(0, byrecord.Seen{Record: rec, Uptime: time.Hour, Store: here})
	found := theirs(6, 3, 1)
	found.Store, found.Floor, found.LostBelow = here, 1000, 1000
	c.step(3000*ms, byrecord.Seen{Record: found, Uptime: time.Hour, Store: here}, "read")
	c.advance(6600*ms, "takeover", "swap 6 for term 4 beat 1")
	c.step(6700*ms, done(7), "elected", "lead in term 4 until 9.600s above 1000, restored")
}
