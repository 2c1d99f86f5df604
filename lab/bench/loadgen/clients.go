// Package loadgen simulates the owners and lookups of many servers and callers.
//
// [Clients] are thousands of owners and lookups in a process, lean enough to share a machine
// with the manager under load. They send the same messages as the libraries. An owner runs the
// state machine of package owner. A lookup numbers its requests, polls as often as the library,
// follows the LSNs of the changes without a gap, and tracks the age of its confirmation; it
// discards the table.
//
// [LibraryOwners] are owners of the owner library, which reconnect exactly as those of an
// application do.
package loadgen

import (
	"context"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
)

// Roles returns the roles of load generators, for [proc.Play].
func Roles() map[string]proc.Role {
	return map[string]proc.Role{roleClients: proc.RoleOf(newClients), roleLibrary: proc.RoleOf(newLibrary)}
}

const (
	roleClients = "clients"
	roleLibrary = "library"
)

// ClientsConfig has the managers and the namespace of clients.
type ClientsConfig struct {
	Namespace string
	Managers  []string // that lookups follow
	Leader    string   // of owners; empty: the only manager
}

// Clients is owners and lookups in a process. It is exported for net/rpc.
type Clients struct {
	ClientsConfig
	clock           *clock.Clock
	traffic         atomic.Int64 // bytes
	counters        counters
	owners, lookups []*client
	lsn             uint64 // that lookups start with
}

type counters struct {
	Expired atomic.Int64 // running owners whose leases expired
	Stale   atomic.Int64 // lookups whose confirmation became too old
	Strange atomic.Int64 // messages without a grant or update
}

func newClients(_ context.Context, config ClientsConfig) (*Clients, error) {
	debug.SetGCPercent(400) // the process shares the processors with the managers
	return &Clients{ClientsConfig: config, clock: clock.New()}, nil
}

// Close leaves the sessions to the end of the process.
func (*Clients) Close() error { return nil }

// StartClients starts processes of [Clients] without sessions. Lookups are divided equally among
// the managers; one whose manager is lost connects to the next.
func StartClients(ctx context.Context, n int, config ClientsConfig) (proc.Group, error) {
	return proc.StartGroup(ctx, roleClients, n, func(int) any { return config })
}

// Look returns the counts of all processes.
func Look(g proc.Group) (sum Counts, err error) {
	all, err := proc.CallAll[Counts](g, "Look", nil)
	sum.Lowest = 1<<64 - 1
	for _, c := range all {
		sum.Expired += c.Expired
		sum.Stale += c.Stale
		sum.Strange += c.Strange
		sum.Bytes += c.Bytes
		sum.Holding += c.Holding
		sum.Share += c.Share
		sum.Proven += c.Proven
		sum.Lowest = min(sum.Lowest, c.Lowest)
	}
	return sum, err
}

// A Growth is the wanted number of sessions of a process.
type Growth struct {
	Owners, Lookups int
	LSN             uint64        // of the lookups' initial table, so that no snapshot is sent
	Within          time.Duration // sessions start at equal intervals within this time
}

// Grow starts more sessions.
func (c *Clients) Grow(g Growth, _ *struct{}) error {
	c.lsn = g.LSN
	var starts []func() error
	for n := len(c.owners); n < g.Owners; n++ {
		c.owners = append(c.owners, c.newOwner(n))
		starts = append(starts, c.owners[n].open)
	}
	for n := len(c.lookups); n < g.Lookups; n++ {
		c.lookups = append(c.lookups, c.newLookup(n))
		starts = append(starts, c.lookups[n].open)
	}
	return startPaced(starts, g.Within)
}

// Restart replaces all sessions, each as soon as it has ended, at equal intervals and in random
// order.
func (c *Clients) Restart(within time.Duration, _ *struct{}) error {
	var restarts []func() error
	for _, one := range slices.Concat(c.owners, c.lookups) {
		restarts = append(restarts, one.restart)
	}
	rand.Shuffle(len(restarts), func(i, j int) { restarts[i], restarts[j] = restarts[j], restarts[i] })
	c.lsn = 0 // they return without a table
	return startPaced(restarts, within)
}

// startPaced starts functions at equal intervals, and waits for them.
func startPaced(all []func() error, within time.Duration) error {
	var group errgroup.Group
	begun := time.Now()
	for i, do := range all {
		time.Sleep(time.Until(begun.Add(within * time.Duration(i) / time.Duration(len(all)))))
		group.Go(do)
	}
	return group.Wait()
}

// Counts are the counters of clients since their start, and their state.
type Counts struct {
	Expired, Stale, Strange int64
	Bytes                   int64 // in both directions

	Holding int     // owners with a lease
	Share   float64 // of all keys, held by all owners
	Proven  int     // lookups with a recent confirmation
	Lowest  uint64  // the lowest LSN of those
}

// Spurious returns the number of leases and confirmations that were lost without a failure.
func (c Counts) Spurious() int64 { return c.Expired + c.Stale }

// Look returns the counts.
func (c *Clients) Look(_ struct{}, counts *Counts) error {
	*counts = c.counts()
	return nil
}

func (c *Clients) counts() Counts {
	out := Counts{
		Expired: c.counters.Expired.Load(), Stale: c.counters.Stale.Load(), Strange: c.counters.Strange.Load(),
		Bytes: c.traffic.Load(), Lowest: 1<<64 - 1,
	}
	for _, one := range c.owners {
		held := one.current().(*ownerSession).leases()
		if len(held) > 0 {
			out.Holding++
		}
		for _, l := range held {
			out.Share += (float64(l.Range.Last()-l.Range.Start) + 1) / (1 << 64)
		}
	}
	for _, one := range c.lookups {
		if lsn, proven := one.current().(*lookupSession).proof(); proven {
			out.Proven++
			out.Lowest = min(out.Lowest, lsn)
		}
	}
	return out
}
