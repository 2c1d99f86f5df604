package availability

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A siteConfig is the servers and frontends of a namespace. A rack is processes that fail together.
type siteConfig struct {
	namespace leasehold.Namespace
	racks     int
	processes int // of the first rack; the others are one each
	servers   int // of a rack
	lookups   int
	timing    *leaseholdv1.Timing // nil: default times
	// supervised is whether each process of the first rack runs under "leasehold run".
	supervised bool
	cable      *cable // between the first rack and all other processes; nil: all are on this computer
}

// place returns where a rack is.
func (c *siteConfig) place(rack int) place {
	switch {
	case c.cable == nil:
		return place{}
	case rack == 0:
		return c.cable.server
	}
	return c.cable.rest
}

// A site has the managers, and racks of servers.
type site struct {
	siteConfig
	group *managers.Group
	racks []proc.Group
	front *frontends
	made  int // namespaces that were created to detect commits

	proc.Cleanup
}

// newSite starts a site, and waits until every key has an owner.
func newSite(ctx context.Context, group *managers.Group, config siteConfig) (s *site, err error) {
	s = &site{siteConfig: config, group: group, racks: make([]proc.Group, config.racks)}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if err := group.CreateNamespace(ctx, &leaseholdv1.NamespaceConfig{Name: string(s.namespace), Timing: s.timing}); err != nil {
		return s, err
	}
	for i := range s.racks {
		if err := s.startRack(ctx, i); err != nil {
			return s, err
		}
	}
	if s.front, err = openFrontends(ctx, s.place(-1), s.namespace, group.Addrs(), s.lookups); err != nil {
		return s, err
	}
	s.Add(s.front.close)
	return s, s.waitForOwners(ctx, len(s.racks)*s.servers)
}

// patience is the timeout of events that take seconds.
const patience = time.Minute

// startRack starts a rack, and waits until its servers have joined.
func (s *site) startRack(ctx context.Context, rack int) (err error) {
	processes, how := 1, proc.How{Where: s.place(rack).where()}
	if rack == 0 {
		processes = max(1, s.processes)
		if s.supervised {
			if how.Supervisor, err = managers.Supervisor(); err != nil {
				return err
			}
		}
	}
	s.racks[rack].Close() // what is left of it
	s.racks[rack], err = loadgen.StartLibraries(ctx, processes, func(i int) loadgen.LibraryConfig {
		return loadgen.LibraryConfig{
			ClientsConfig: loadgen.ClientsConfig{Namespace: string(s.namespace), Managers: s.group.Addrs()},
			Name:          fmt.Sprintf("rack-%d-%d", rack+1, i+1), Count: s.servers / processes, Serve: true, Host: s.place(rack).ip(),
		}
	}, how)
	if err != nil {
		return err
	}
	s.Add(s.racks[rack].Close)
	return nil
}

// killRack kills all processes of a rack.
func (s *site) killRack(rack int) {
	_ = proc.Each(len(s.racks[rack]), func(i int) error {
		s.racks[rack][i].Kill()
		return nil
	})
}

// waitForOwners waits for a number of owners, and until each key has one.
func (s *site) waitForOwners(ctx context.Context, owners int) error {
	return proc.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		n, err := s.group.Namespace(ctx, string(s.namespace))
		if err != nil {
			return err
		}
		if n.GetVacant() > 0 || n.GetOwners() != uint32(owners) || n.GetMoves() > 0 {
			return fmt.Errorf("%d owners of %d, %d ranges without", n.GetOwners(), owners, n.GetVacant())
		}
		return nil
	})
}

type outcome struct {
	service time.Duration // the longest operation
	changes time.Duration // until a change was committed
	failed  int           // operations that failed
}

func (s *site) storeLeader(ctx context.Context) (found *managers.Manager, err error) {
	err = proc.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		for _, m := range s.group.All {
			if leads, err := managers.StoreLeads(ctx, m); err == nil && leads {
				found = m
				return nil
			}
		}
		return errors.New("no store leads")
	})
	return found, err
}

// The frontends during an event, each with its own key.
const (
	watched    = 128
	watchPause = 5 * time.Millisecond
	// before and after are times without a fault.
	before = 500 * time.Millisecond
	after  = time.Second
)

func (s *site) measureEvent(ctx context.Context, e event) (out outcome, err error) {
	workers := s.front.work(ctx, watched, watchPause, true)
	defer workers.end()
	_ = proc.Pause(ctx, before) // inject fails if the run has ended
	begun := time.Now()
	if err := e.inject(ctx, s); err != nil {
		return out, err
	}
	owners := len(s.racks)
	if e.changes {
		s.made++
		if err := s.group.CreateNamespace(ctx, &leaseholdv1.NamespaceConfig{Name: fmt.Sprintf("made-%d", s.made)}); err != nil {
			return out, err
		}
		out.changes = time.Since(begun)
	} else {
		owners--
	}
	if err := s.waitForOwners(ctx, owners); err != nil {
		return out, err
	}
	_ = proc.Pause(ctx, after) // the same
	done, failed := workers.end()
	out.service, out.failed = worst(done, begun), failed
	if err := e.repair(ctx, s); err != nil {
		return out, err
	}
	return out, s.waitForOwners(ctx, len(s.racks))
}
