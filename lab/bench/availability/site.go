package availability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const namespace leasehold.Namespace = "availability"

// A site is three managers and racks of servers. A rack is a process: its servers fail together.
type site struct {
	group   *managers.Group
	racks   []*proc.Process
	servers int // of a rack
	front   *frontends
	made    int // namespaces that were created to detect commits

	proc.Cleanup
}

// newSite starts a site, and waits until every key has an owner.
func newSite(ctx context.Context, dir string, racks, servers, lookups int) (s *site, err error) {
	s = &site{racks: make([]*proc.Process, racks), servers: servers}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.group, err = managers.Start(ctx, dir, 3); err != nil {
		return s, err
	}
	s.Add(s.group.Close)
	if err := s.group.CreateNamespace(ctx, &leaseholdv1.NamespaceConfig{Name: string(namespace)}); err != nil {
		return s, err
	}
	for i := range racks {
		if err := s.startRack(ctx, i); err != nil {
			return s, err
		}
	}
	if s.front, err = openFrontends(ctx, s.group.Addrs(), lookups); err != nil {
		return s, err
	}
	s.Add(s.front.close)
	return s, s.waitForOwners(ctx, racks*servers)
}

// patience is the timeout of events that take seconds.
const patience = time.Minute

// startRack starts a rack, and waits until its servers have joined.
func (s *site) startRack(ctx context.Context, rack int) error {
	r, err := loadgen.StartLibrary(ctx, loadgen.LibraryConfig{
		ClientsConfig: loadgen.ClientsConfig{Namespace: string(namespace), Managers: s.group.Addrs()},
		Name:          fmt.Sprintf("rack-%d", rack+1), Count: s.servers, Serve: true,
	})
	if err != nil {
		return err
	}
	s.racks[rack] = r
	s.Add(r.Close)
	return nil
}

// waitForOwners waits for a number of owners, and until each key has one.
func (s *site) waitForOwners(ctx context.Context, owners int) error {
	return proc.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		n, err := s.group.Namespace(ctx, string(namespace))
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

type event struct {
	name, title string
	inject      func(ctx context.Context, s *site) error
	repair      func(ctx context.Context, s *site) error
	changes     bool // measure the time until a change is committed, too
}

func events() []event {
	startRack := func(ctx context.Context, s *site) error { return s.startRack(ctx, 0) }
	var killed *managers.Manager
	restart := func(context.Context, *site) error { return killed.Start() }
	kill := func(m *managers.Manager, err error) error {
		if killed = m; err == nil {
			m.Kill()
		}
		return err
	}
	killLeader := func(ctx context.Context, s *site) error { return kill(s.group.Leader(ctx)) }
	killStoreLeader := func(ctx context.Context, s *site) error { return kill(s.storeLeader(ctx)) }
	drain := func(ctx context.Context, s *site) error { return s.racks[0].Terminate(ctx) }
	crash := func(_ context.Context, s *site) error {
		s.racks[0].Close()
		return nil
	}
	return []event{
		{"drain", "a server is shut down (SIGTERM)", drain, startRack, false},
		{"owner-crash", "a server dies (kill -9)", crash, startRack, false},
		{"leader-crash", "the leader dies (kill -9)", killLeader, restart, true},
		{"store-leader-crash", "the store's leader dies (kill -9)", killStoreLeader, restart, true},
	}
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

// PRS's experiment: 250 servers, of which a rack of 50 is reset, and 1,000 frontends. Every 50
// frontends share a lookup, like those of one machine.
const (
	racks         = 5
	rackServers   = 50
	frontendCount = 1000
	lookupCount   = 20
	think         = 500 * time.Millisecond // between two operations of a frontend
)

type resets struct {
	normal, dies, back []time.Duration // durations of operations
}

func reset(ctx context.Context, r *report.Run) (*resets, error) {
	s, err := newSite(ctx, r.Dir, racks, rackServers, lookupCount)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	r.Step("the rack: %d servers are running", racks*rackServers)
	out := &resets{}
	phase := func(do func() error, calm time.Duration) ([]time.Duration, error) {
		workers := s.front.work(ctx, frontendCount, think, false)
		defer workers.end()
		if err := do(); err != nil {
			return nil, err
		}
		_ = proc.Pause(ctx, calm) // a canceled run is reported below
		done, _ := workers.end()
		var took []time.Duration
		for _, o := range done {
			took = append(took, o.took)
		}
		slices.Sort(took)
		return took, ctx.Err()
	}
	if out.normal, err = phase(func() error { return nil }, 8*time.Second); err != nil {
		return nil, err
	}
	r.Step("the rack: %d operations without trouble", len(out.normal))
	out.dies, err = phase(func() error {
		s.racks[0].Close()
		return s.waitForOwners(ctx, (racks-1)*rackServers)
	}, 2*time.Second)
	if err != nil {
		return nil, err
	}
	r.Step("the rack was killed, and all keys are served again")
	out.back, err = phase(func() error {
		if err := s.startRack(ctx, 0); err != nil {
			return err
		}
		return s.waitForOwners(ctx, racks*rackServers)
	}, 4*time.Second)
	r.Step("the rack is back")
	return out, err
}
