package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/leasehold-dev/leasehold/bench/managers"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A site is three managers, and racks of servers.
type site struct {
	group  *managers.Group
	dir    string
	racks  []*rack
	joined chan struct{}
	front  *frontends
	made   int // namespaces, to see that changes are recorded
}

// newSite starts all of it, and waits until every key has an owner.
func newSite(ctx context.Context, racks, servers, lookups int) (_ *site, err error) {
	s := &site{joined: make(chan struct{}, racks)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.dir, err = os.MkdirTemp("", "bench-availability-"); err != nil {
		return nil, err
	}
	if s.group, err = managers.Start(ctx, 3); err != nil {
		return nil, err
	}
	leader, err := s.group.Leader(ctx)
	if err != nil {
		return nil, err
	}
	if err := leader.Create(ctx, &leaseholdv1.NamespaceConfig{Name: string(namespace)}); err != nil {
		return nil, err
	}
	for i := range racks {
		r, err := newRack(s.dir, fmt.Sprintf("rack-%d", i+1), s.group.Addrs(), servers, func() { s.joined <- struct{}{} })
		if err != nil {
			return nil, err
		}
		s.racks = append(s.racks, r)
		if err := s.bring(ctx, r); err != nil {
			return nil, err
		}
	}
	if s.front, err = openFrontends(ctx, s.group.Addrs(), lookups); err != nil {
		return nil, err
	}
	err = s.whole(ctx, racks*servers)
	return s, err
}

func (s *site) close() {
	if s.front != nil {
		s.front.close()
	}
	for _, r := range s.racks {
		r.Close()
	}
	if s.group != nil {
		s.group.Close()
	}
	_ = os.RemoveAll(s.dir)
}

// patience is for whatever should take seconds.
const patience = time.Minute

// bring starts a rack and waits until its servers have joined.
func (s *site) bring(ctx context.Context, r *rack) error {
	if err := r.Start(); err != nil {
		return err
	}
	select {
	case <-s.joined:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(patience):
		return errors.New("a rack has not joined within a minute")
	}
}

// whole waits until there are so many owners, and none but they have keys.
func (s *site) whole(ctx context.Context, owners int) error {
	return managers.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		leader, err := s.group.Leader(ctx)
		if err != nil {
			return err
		}
		n, err := leader.Namespace(ctx, string(namespace))
		if err != nil {
			return err
		}
		if n.GetVacant() > 0 || n.GetOwners() != uint32(owners) || n.GetMoves() > 0 {
			return fmt.Errorf("%d owners of %d, %d ranges without", n.GetOwners(), owners, n.GetVacant())
		}
		return nil
	})
}

// An outcome is how long an event kept things from being done.
type outcome struct {
	service time.Duration // the longest operation
	changes time.Duration // until a change was recorded again
	failed  int           // operations that were given up
}

// An event happens while frontends work.
type event struct {
	name, title string
	strike      func(ctx context.Context, s *site) error
	mend        func(ctx context.Context, s *site) error
	changes     bool // how long no change can be recorded is measured, too
}

func events() []event {
	bring := func(ctx context.Context, s *site) error { return s.bring(ctx, s.racks[0]) }
	var killed *managers.Manager
	restart := func(context.Context, *site) error { return killed.Start() }
	return []event{
		{"drain", "a server is shut down (SIGTERM)", func(ctx context.Context, s *site) error { return s.racks[0].Finish(ctx) }, bring, false},
		{"owner-crash", "a server dies (kill -9)", func(_ context.Context, s *site) error { s.racks[0].Kill(); return nil }, bring, false},
		{"leader-crash", "the leader dies (kill -9)", func(ctx context.Context, s *site) (err error) {
			if killed, err = s.group.Leader(ctx); err == nil {
				killed.Kill()
			}
			return err
		}, restart, true},
		{"store-leader-crash", "the store's leader dies (kill -9)", func(ctx context.Context, s *site) (err error) {
			if killed, err = s.storeLeader(ctx); err == nil {
				killed.Kill()
			}
			return err
		}, restart, true},
	}
}

// storeLeader finds the manager whose store leads.
func (s *site) storeLeader(ctx context.Context) (found *managers.Manager, err error) {
	err = managers.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		for _, m := range s.group.All {
			if leads, err := m.StoreLeads(ctx); err == nil && leads {
				found = m
				return nil
			}
		}
		return errors.New("no store leads")
	})
	return found, err
}

// The frontends that watch an event: each has a key of its own.
const (
	watched    = 128
	watchPause = 5 * time.Millisecond
	// before and after are for operations without trouble.
	before = 500 * time.Millisecond
	after  = time.Second
)

// undergo lets an event happen, and mends what it broke.
func (s *site) undergo(ctx context.Context, e event) (out outcome, err error) {
	crew := s.front.work(ctx, watched, watchPause, true)
	defer crew.stop()
	wait(ctx, before)
	begun := time.Now()
	if err := e.strike(ctx, s); err != nil {
		return out, err
	}
	owners := len(s.racks)
	if e.changes {
		if err := s.record(ctx); err != nil {
			return out, err
		}
		out.changes = time.Since(begun)
	} else {
		owners--
	}
	if err := s.whole(ctx, owners); err != nil {
		return out, err
	}
	wait(ctx, after)
	done, failed := crew.end()
	out.service, out.failed = worst(done, begun), failed
	if err := e.mend(ctx, s); err != nil {
		return out, err
	}
	return out, s.whole(ctx, len(s.racks))
}

// record waits until a change is recorded: a namespace is made.
func (s *site) record(ctx context.Context) error {
	s.made++
	config := &leaseholdv1.NamespaceConfig{Name: fmt.Sprintf("made-%d", s.made)}
	return managers.Until(ctx, 10*time.Millisecond, func(ctx context.Context) error {
		failures := errors.New("no manager lives")
		for _, m := range s.group.All {
			if m.Life() == 0 {
				continue
			}
			err := m.TryCreate(ctx, config, time.Second)
			if err == nil {
				return nil
			}
			failures = err
		}
		return failures
	})
}
