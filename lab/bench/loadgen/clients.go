// Package loadgen simulates the owners and lookups of many servers and callers.
//
// [Clients] are thousands of owners and lookups in two processes, lean enough to
// share a machine with the manager under load. They send the same messages as the
// libraries. An [Owner] runs the state machine of package owner. A lookup numbers its
// requests, polls as often as the library, follows the LSNs of the changes without a
// gap, and tracks the age of its confirmation; it discards the table. Both exchange
// HTTP/2 frames on a [Conn], which costs a goroutine and a few kB.
//
// [LibraryOwners] are owners of the owner library, which reconnect exactly as those of an
// application do. [Local] is one of them with its manager in the same process.
package loadgen

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
)

// Roles returns the roles of load generators, for [proc.Play].
func Roles() map[string]proc.Role {
	return map[string]proc.Role{roleClients: proc.RoleOf(newLeanClients), roleLibrary: proc.RoleOf(newLibrary)}
}

const (
	roleClients = "clients"
	roleLibrary = "library"
)

// ClientsConfig has the managers and the namespace of clients.
type ClientsConfig struct {
	Namespace string
	Managers  []string
}

// LeanClients is owners and lookups in a process. It is exported for net/rpc.
type LeanClients struct {
	ClientsConfig
	clock           *clock.Clock
	traffic         Traffic
	counters        counters
	owners, lookups []*endpoint
	poll            time.Duration // of lookups
	lsn             uint64        // that lookups start with
}

type counters struct {
	Expired atomic.Int64 // running owners whose leases expired
	Stale   atomic.Int64 // lookups whose confirmation became too old
	Broken  atomic.Int64 // connections that ended unexpectedly
	Strange atomic.Int64 // messages without a grant or update
	Unheard atomic.Int64 // owners whose Leave had no reply
}

func newLeanClients(_ context.Context, config ClientsConfig) (*LeanClients, error) {
	c := &LeanClients{ClientsConfig: config, clock: clock.New()}
	go c.traffic.watch()
	return c, nil
}

// Close leaves the sessions to the end of the process.
func (*LeanClients) Close() error { return nil }

// A Growth is the wanted number of sessions.
type Growth struct {
	Owners, Lookups int
	Together        int           // lookups per connection; 0 is 1
	Poll            time.Duration // of lookups; 0 is the library's default
	LSN             uint64        // of the lookups' initial table, so that no snapshot is sent
	Within          time.Duration // sessions start at equal intervals within this time
}

// Grow starts more sessions.
func (c *LeanClients) Grow(g Growth, counts *Counts) error {
	together := max(1, g.Together)
	c.poll, c.lsn = cmp.Or(g.Poll, Poll), g.LSN
	var all []func() error
	for n := len(c.owners); n < g.Owners; n++ {
		e := c.ownerEndpoint(n)
		c.owners = append(c.owners, e)
		all = append(all, func() error { return e.open(1) })
	}
	for n := len(c.lookups); n*together < g.Lookups; n++ {
		e := c.lookupEndpoint(n)
		c.lookups = append(c.lookups, e)
		all = append(all, func() error { return e.open(min(together, g.Lookups-n*together)) })
	}
	err := startPaced(all, g.Within)
	*counts = c.counts()
	return err
}

// A Restart selects sessions to replace.
type Restart struct {
	Owners, Lookups int           // at random
	Part, Parts     int           // or one of several equal parts
	Together        int           // lookups per connection
	Within          time.Duration // restarts start at equal intervals within this time
	Crash           bool          // owners end without a Leave
}

// Restart replaces sessions, each as soon as it has ended.
func (c *LeanClients) Restart(r Restart, counts *Counts) error {
	owners, lookups := pickRandom(c.owners, r.Owners), pickRandom(c.lookups, r.Lookups/max(1, r.Together))
	if r.Parts > 0 {
		owners, lookups = pickPart(c.owners, r.Part, r.Parts), pickPart(c.lookups, r.Part, r.Parts)
	}
	var all []func() error
	for _, e := range slices.Concat(owners, lookups) {
		all = append(all, func() error {
			e.close(r.Crash)
			return e.open(len(e.current()))
		})
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	err := startPaced(all, r.Within)
	*counts = c.counts()
	return err
}

// pickRandom returns n endpoints at random, or all.
func pickRandom(all []*endpoint, n int) (picked []*endpoint) {
	for _, i := range rand.Perm(len(all))[:min(n, len(all))] {
		picked = append(picked, all[i])
	}
	return picked
}

// pickPart returns one of several parts of equal size.
func pickPart(all []*endpoint, at, of int) (picked []*endpoint) {
	for i := at; i < len(all); i += of {
		picked = append(picked, all[i])
	}
	return picked
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
	Expired, Stale, Broken, Strange, Unheard int64
	In, Out                                  int64 // bytes
	Peak                                     int64 // the maximum in one second since the last Look

	Holding int     // owners with a lease
	Share   float64 // of all keys, held by all owners
	Proven  int     // lookups with a recent confirmation
	Lowest  uint64  // the lowest LSN of those
}

// Spurious returns the number of leases and confirmations that were lost without a failure.
func (c Counts) Spurious() int64 { return c.Expired + c.Stale }

// Look returns the counts.
func (c *LeanClients) Look(_ struct{}, counts *Counts) error {
	*counts = c.counts()
	c.traffic.peak.Store(0)
	return nil
}

func (c *LeanClients) counts() Counts {
	t := &c.counters
	out := Counts{
		Expired: t.Expired.Load(), Stale: t.Stale.Load(), Broken: t.Broken.Load(), Strange: t.Strange.Load(), Unheard: t.Unheard.Load(),
		In: c.traffic.in.Load(), Out: c.traffic.out.Load(), Peak: c.traffic.peak.Load(),
	}
	for _, e := range c.owners {
		for _, s := range e.current() {
			held := s.(*ownerSession).Leases()
			if len(held) > 0 {
				out.Holding++
			}
			for _, l := range held {
				out.Share += (float64(l.Range.Last()-l.Range.Start) + 1) / (1 << 64)
			}
		}
	}
	out.Lowest = 1<<64 - 1
	for _, e := range c.lookups {
		for _, s := range e.current() {
			if lsn, proven := s.(*lookupSession).proof(); proven {
				out.Proven++
				out.Lowest = min(out.Lowest, lsn)
			}
		}
	}
	return out
}

// Clients is a process of owners and a process of lookups, so that the traffic of lookups
// does not delay renewals, as on separate machines.
type Clients [2]*proc.Process

// StartClients starts processes without sessions. Clients are divided equally among several
// managers; a client whose manager is lost, or does not lead, connects to the next. A list
// without managers starts no process.
func StartClients(ctx context.Context, namespace string, ofOwners, ofLookups []string) (c *Clients, err error) {
	c = &Clients{}
	for i, managers := range [][]string{ofOwners, ofLookups} {
		if len(managers) == 0 {
			continue
		}
		if c[i], err = proc.Start(ctx, roleClients, ClientsConfig{namespace, managers}); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// Grow starts more sessions.
func (c *Clients) Grow(g Growth) (Counts, error) {
	owners, lookups := g, g
	owners.Lookups, lookups.Owners = 0, 0
	return c.call("Grow", owners, lookups)
}

// Restart replaces sessions.
func (c *Clients) Restart(r Restart) (Counts, error) {
	owners, lookups := r, r
	owners.Lookups, lookups.Owners = 0, 0
	return c.call("Restart", owners, lookups)
}

// Look returns the counts.
func (c *Clients) Look() (Counts, error) { return c.call("Look", nil, nil) }

// call calls both processes at the same time, and adds up their counts.
func (c *Clients) call(method string, ofOwners, ofLookups any) (Counts, error) {
	args, counts := []any{ofOwners, ofLookups}, make([]Counts, len(c))
	err := proc.Each(len(c), func(i int) error {
		if c[i] == nil {
			return nil
		}
		return c[i].Call(method, args[i], &counts[i])
	})
	return counts[0].with(counts[1]), err
}

// with adds the counts of lookups to those of owners. The sum is an upper bound of the peak.
func (c Counts) with(lookups Counts) Counts {
	c.Expired += lookups.Expired
	c.Stale += lookups.Stale
	c.Broken += lookups.Broken
	c.Strange += lookups.Strange
	c.Unheard += lookups.Unheard
	c.In += lookups.In
	c.Out += lookups.Out
	c.Peak += lookups.Peak
	c.Proven, c.Lowest = lookups.Proven, lookups.Lowest
	return c
}

// Close ends both processes.
func (c *Clients) Close() {
	for _, p := range c {
		if p != nil {
			p.Close()
		}
	}
}
