package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// ManagerMember is a manager with its store in memory, and an owner that joins and
// leaves: each time it joins, all its ranges are granted in one change. It is exported
// for net/rpc.
type ManagerMember struct {
	m       *manager.Manager
	addr    string
	written chan written
	owner   *owner.Owner
}

// ranges is how many an owner is granted in a change: some 1,600 bytes.
const ranges = 64

// startManager starts one for so many connections and streams at most.
func startManager(ctx context.Context, most int) (*ManagerMember, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &ManagerMember{addr: l.Addr().String(), written: make(chan written, 64)}
	s.m, err = manager.Start(manager.Config{
		Store: timed{mem.New(), s.written}, Listener: l, MaxConnections: most, MaxStreams: most, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepare makes the namespace and a first change, the table that lookups begin with.
func (s *ManagerMember) prepare(ctx context.Context) error {
	conn, err := proc.Dial(s.addr, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(proc.CreateNamespace(ctx, conn, proc.EverySecond(namespace, "o", ranges)), conn.Close()); err != nil {
		return err
	}
	var c Change
	return errors.Join(s.Change(0, &c), s.Undo(struct{}{}, &c))
}

// Addr is where it serves clients.
func (s *ManagerMember) Addr() string { return s.addr }

// Change lets the owner join, and returns when the change was handed to the store. How
// long a manager waits for other owners before it makes a change, so as to make few,
// is not part of its way to lookups.
func (s *ManagerMember) Change(_ int, c *Change) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.owner, err = owner.Join(ctx, owner.Config{Namespace: namespace, Managers: []string{s.addr}, Name: "o", Addr: "10.0.0.1:80"}); err != nil {
		return err
	}
	*c, err = s.await(ctx)
	return err
}

// Undo lets the owner leave.
func (s *ManagerMember) Undo(_ struct{}, c *Change) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := s.owner.Close(ctx)
	s.owner = nil
	if err == nil {
		*c, err = s.await(ctx)
	}
	return err
}

// await waits until all ranges have changed in one batch.
func (s *ManagerMember) await(ctx context.Context) (Change, error) {
	select {
	case w := <-s.written:
		if w.changes != ranges {
			return Change{}, fmt.Errorf("%d ranges have changed at a time, and %d should have", w.changes, ranges)
		}
		return w.Change, nil
	case <-ctx.Done():
		return Change{}, fmt.Errorf("the table has not changed: %w", ctx.Err())
	}
}

// Close ends the owner and the manager.
func (s *ManagerMember) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), proc.EndLimit/2)
	defer cancel()
	if s.owner != nil {
		_ = s.owner.Close(ctx)
	}
	return s.m.Close(ctx)
}

// written is a batch that was handed to the store.
type written struct {
	Change
	changes int
}

// timed reports batches.
type timed struct {
	store.Store
	written chan<- written
}

func (t timed) Append(ctx context.Context, b *storage.Batch) (storage.Outcome, error) {
	begin := time.Now()
	outcome, err := t.Store.Append(ctx, b)
	if err == nil && outcome == storage.Done {
		t.written <- written{Change{begin, uint64(b.Last())}, len(b.Changes)}
	}
	return outcome, err
}
