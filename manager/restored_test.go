package manager_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// backup returns a disk with a copy of a store.
func (c *cluster) backup(s *mem.Store) *mem.Disk {
	c.t.Helper()
	ctx := c.t.Context()
	must := func(err error) {
		c.t.Helper()
		if err != nil {
			c.t.Fatal(err)
		}
	}
	record, err := s.Record(ctx, true)
	must(err)
	catalog, err := s.Catalog(ctx)
	must(err)
	disk := mem.NewDisk()
	to := disk.Open()
	defer to.Close() //nolint:errcheck // never fails
	record.Version = 0
	_, _, err = to.Swap(ctx, 0, record)
	must(err)
	for _, n := range catalog.Namespaces {
		state, err := s.Load(ctx, n.Name)
		must(err)
		_, err = to.Append(ctx, &storage.Batch{Namespace: n.Name, Term: record.Term, Changes: state.Changes})
		must(err)
	}
	catalog.Version = 0
	_, err = to.SaveCatalog(ctx, catalog)
	must(err)
	return disk
}

// newestOf returns the newest generation of owners.
func newestOf(owners ...*owner.Owner) (g leasehold.Generation) {
	for _, o := range owners {
		for _, l := range o.Leases() {
			g = max(g, l.Generation)
		}
	}
	return g
}

// The store is restored from an old backup, while owners and lookups run. This is detected and logged; the next term is
// above all that they have seen, so that they are served again. No generation or LSN is reused, not even if the same
// backup is restored again, or if managers end before their first write. Lookups converge on the right table, and report
// every loss.
func TestRestoredStore(t *testing.T) {
	for name, away := range map[string]time.Duration{"while owners have leases": 5 * time.Second, "after they have ended": 2 * time.Minute} {
		for _, failovers := range []int{0, 1, 5} { // with one, the term after that of the backup is led a second time
			if testing.Short() && failovers != 1 {
				continue
			}
			for _, ends := range []int{0, 2} {
				t.Run(fmt.Sprintf("%s, %d, %d", name, failovers, ends), func(t *testing.T) { restored(t, away, failovers, ends, false) })
			}
		}
		t.Run(name+", the record is resigned", func(t *testing.T) { restored(t, away, 1, 0, true) })
	}
	if !testing.Short() {
		t.Run("after hours", func(t *testing.T) { restored(t, 6*time.Hour, 1, 0, false) })
	}
}

// restored restores the same backup twice, each time after the manager was down for a while. If resigned is set, the
// leader has resigned before the backup.
func restored(t *testing.T, away time.Duration, failovers, ends int, resigned bool) {
	inBubble(t, func(t *testing.T, c *cluster) {
		d := &diary{}
		c.logs = d
		c.start("m1")
		c.create("m1", pool())
		a := c.join("a")
		eventually(t, 5*time.Second, "a has everything", func() bool { return complete(a) })
		if resigned {
			c.stop("m1")
		}
		source := c.disk.Open()
		if record, err := source.Record(t.Context(), true); err != nil || record.Resigned != resigned {
			t.Fatalf("the record is %+v, %v", record, err)
		}
		backups := []*mem.Disk{c.backup(source), c.backup(source)}
		if resigned {
			c.start("m1")
		}
		b := c.join("b")
		eventually(t, time.Minute, "two have everything", func() bool { return complete(a, b) && len(b.Leases()) > 0 })
		for range failovers { // terms and generations rise
			c.stop("m1")
			c.start("m1")
			e := c.join("e")
			eventually(t, time.Minute, "three have everything", func() bool { return complete(a, b, e) && len(e.Leases()) > 0 })
			c.leave(e)
			eventually(t, time.Minute, "two have everything", func() bool { return complete(a, b) })
		}
		all := []*owner.Owner{a, b}
		l := c.open()
		eventually(t, time.Minute, "the lookup knows all", func() bool { return follows(l, all...) })
		for i, old := range backups { // of the same time: the second has no trace of the first
			before, lsn := newestOf(all...), l.LSN()
			held := heldBy(all...)
			c.crash("m1")
			time.Sleep(away)
			c.disk = old
			for range ends { // it leads, and ends before its first grant
				c.start("m1")
				time.Sleep(5 * time.Second)
				c.crash("m1")
			}
			c.start("m1")
			time.Sleep(30 * time.Second)
			e := c.join(fmt.Sprintf("e%d", i))
			all = append(all, e)
			eventually(t, time.Minute, "all keys are owned again", func() bool { return complete(all...) && len(e.Leases()) > 0 })
			for _, l := range e.Leases() {
				// Other generations may have been granted in between.
				if l.Generation <= before+1<<19 {
					t.Errorf("%v is granted after %d restores, and generation %d was given before", l, i+1, before)
				}
			}
			if d.count("the store was restored from a backup.") <= i {
				t.Errorf("the restore is not logged: %q", d.lines)
			}
			eventually(t, time.Minute, "the lookup knows all again", func() bool { return follows(l, all...) })
			if l.LSN() <= lsn+1<<19 {
				t.Errorf("after %d restores the lookup has gone from change %d to %d", i+1, lsn, l.LSN())
			}
			lost := endedSince(held, all...)
			if len(lost) == 0 {
				t.Error("the backup had all leases: the test is void")
			}
			for name, l := range map[string]*lookup.Lookup{"connected": l, "resumed": c.open()} {
				if silent := lost.Subtract(ranges(collectLosses(t, l, lsn, time.Second))); len(silent) > 0 {
					t.Errorf("%s: %v was lost, and is not reported", name, silent)
				}
			}
		}
	})
}

// heldBy returns the leases of each owner.
func heldBy(owners ...*owner.Owner) map[leasehold.OwnerID][]leasehold.Lease {
	all := map[leasehold.OwnerID][]leasehold.Lease{}
	for _, o := range owners {
		all[o.Name()] = o.Leases()
	}
	return all
}

// endedSince returns the keys of leases that owners had and no longer have.
func endedSince(held map[leasehold.OwnerID][]leasehold.Lease, owners ...*owner.Owner) (ended keyrange.Set) {
	for _, o := range owners {
		for _, before := range held[o.Name()] {
			var kept []leasehold.Range
			for _, l := range o.Leases() {
				if l.Generation == before.Generation {
					kept = append(kept, l.Range)
				}
			}
			ended = ended.Union(keyrange.NewSet(before.Range).Subtract(keyrange.NewSet(kept...)))
		}
	}
	return ended
}

// follows reports whether a lookup has the current table.
func follows(l *lookup.Lookup, owners ...*owner.Owner) bool {
	for _, o := range owners {
		for _, lease := range o.Leases() {
			if at, ok := l.At(lease.Range.Start); !ok || at.Owner != o.Name() || at.Generation != lease.Generation {
				return false
			}
		}
	}
	return l.Ready()
}
