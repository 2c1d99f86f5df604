// Package loadgen simulates the owners and lookups of many servers and callers.
//
// [Clients] are thousands of them in one process, so lean that they can share a
// computer with the manager under load. They send what real ones send. An [Owner]
// runs the state machine of package owner. A lookup numbers its requests, polls as
// often as the library's does, follows the LSNs of the changes without a gap, and
// knows the age of its proof; it discards the table. Both speak HTTP/2 frames on a
// [Conn], which costs a goroutine and a few kB.
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

// Roles are those of load generators, for [proc.Play].
func Roles() map[string]proc.Role {
	return map[string]proc.Role{roleClients: proc.RoleOf(newLeanClients), roleLibrary: proc.RoleOf(newLibrary)}
}

const (
	roleClients = "clients"
	roleLibrary = "library"
)

// ClientsConfig names the managers and the namespace of clients.
type ClientsConfig struct {
	Namespace string
	Managers  []string
}

// LeanClients is owners and lookups in a process. It is exported for net/rpc.
type LeanClients struct {
	ClientsConfig
	clock           *clock.Clock
	traffic         Traffic
	tally           tally
	owners, lookups []*endpoint
	poll            time.Duration // of lookups
	lsn             uint64        // that lookups start with
}

type tally struct {
	Expired atomic.Int64 // owners whose leases expired though they lived
	Stale   atomic.Int64 // lookups whose proof became too old
	Broken  atomic.Int64 // connections that ended unexpectedly
	Strange atomic.Int64 // messages without a grant or update
	Unheard atomic.Int64 // owners whose goodbye was not answered
}

func newLeanClients(_ context.Context, config ClientsConfig) (*LeanClients, error) {
	c := &LeanClients{ClientsConfig: config, clock: clock.New()}
	go c.traffic.watch()
	return c, nil
}

// Close leaves the sessions to the end of the process.
func (*LeanClients) Close() error { return nil }

// A Growth is how many sessions there are to be.
type Growth struct {
	Owners, Lookups int
	Together        int           // lookups that share a connection; 0 is 1
	Poll            time.Duration // of lookups; 0 is as the library's
	LSN             uint64        // of the table that lookups start with, so that none has to be sent
	Within          time.Duration // the sessions start at equal intervals within that
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
	err := paced(all, g.Within)
	*counts = c.counts()
	return err
}

// A Restart is which sessions are replaced.
type Restart struct {
	Owners, Lookups int           // drawn at random
	Part, Parts     int           // or all of one part, of so many into which they are divided
	Together        int           // lookups that share a connection
	Within          time.Duration // restarts begin at equal intervals within that
	Crash           bool          // owners end without a goodbye
}

// Restart replaces sessions, each as soon as it has ended.
func (c *LeanClients) Restart(r Restart, counts *Counts) error {
	owners, lookups := some(c.owners, r.Owners), some(c.lookups, r.Lookups/max(1, r.Together))
	if r.Parts > 0 {
		owners, lookups = part(c.owners, r.Part, r.Parts), part(c.lookups, r.Part, r.Parts)
	}
	var all []func() error
	for _, e := range slices.Concat(owners, lookups) {
		all = append(all, func() error {
			e.close(r.Crash)
			return e.open(len(e.current()))
		})
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	err := paced(all, r.Within)
	*counts = c.counts()
	return err
}

// some picks n of them at random, or all.
func some(all []*endpoint, n int) (picked []*endpoint) {
	for _, i := range rand.Perm(len(all))[:min(n, len(all))] {
		picked = append(picked, all[i])
	}
	return picked
}

// part is one of so many parts of equal size.
func part(all []*endpoint, at, of int) (picked []*endpoint) {
	for i := at; i < len(all); i += of {
		picked = append(picked, all[i])
	}
	return picked
}

// paced begins all at equal intervals, and waits for them.
func paced(all []func() error, within time.Duration) error {
	var group errgroup.Group
	begun := time.Now()
	for i, do := range all {
		time.Sleep(time.Until(begun.Add(within * time.Duration(i) / time.Duration(len(all)))))
		group.Go(do)
	}
	return group.Wait()
}

// Counts are what clients have counted since they began, and their state.
type Counts struct {
	Expired, Stale, Broken, Strange, Unheard int64
	In, Out                                  int64 // bytes
	Peak                                     int64 // the most in one second, since the last look

	Holding int     // owners that have a lease
	Share   float64 // of all keys that they have, together
	Proven  int     // lookups that have proof, not too old
	Lowest  uint64  // the last change that all of those have
}

// Spurious is how many have lost a lease or proof though none had failed.
func (c Counts) Spurious() int64 { return c.Expired + c.Stale }

// Look returns the counts.
func (c *LeanClients) Look(_ struct{}, counts *Counts) error {
	*counts = c.counts()
	c.traffic.peak.Store(0)
	return nil
}

func (c *LeanClients) counts() Counts {
	t := &c.tally
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

// Clients is a process of owners and one of lookups: what lookups have to read does
// not keep owners from renewing, as it would not on computers of their own.
type Clients [2]*proc.Process

// StartClients starts processes without sessions. Of several managers each has as many
// clients as the others; a client that loses its manager, or learns that it does not
// lead, turns to the next. Without managers there is no such process.
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

// with adds the counts of lookups to those of owners. The true peak may be less than
// the sum.
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
