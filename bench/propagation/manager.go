package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/wire"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// A managerMember is a manager with its store in memory, and an owner that joins
// and leaves: each time it joins, all its ranges are granted in one change.
type managerMember struct {
	m       *manager.Manager
	addr    string
	written chan written
	owner   *owner.Owner
}

// ranges is how many an owner is granted in a change: some 1,600 bytes.
const ranges = 64

// The orders of a server.
const (
	orderChange = "change" // Batch is how many bytes it should have, if there is a choice
	orderUndo   = "undo"
)

func startManager(ctx context.Context, args []string) (cast.Member, string, error) {
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	most := flags.Int("most", 1000, "how many connections and streams there will be at most")
	if err := flags.Parse(args); err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	s := &managerMember{addr: l.Addr().String(), written: make(chan written, 64)}
	s.m, err = manager.Start(manager.Config{
		Store: timed{mem.New(), s.written}, Listener: l, MaxConnections: *most, MaxStreams: *most, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, cast.StartLimit)
	defer cancel()
	if err := s.createNamespace(ctx); err != nil {
		return nil, "", errors.Join(err, s.Close())
	}
	// The first change makes the table that lookups begin with.
	for _, order := range []string{orderChange, orderUndo} {
		if _, err := s.Obey(ctx, cast.Order{Do: order}); err != nil {
			return nil, "", errors.Join(err, s.Close())
		}
	}
	return s, s.addr, nil
}

func (s *managerMember) createNamespace(ctx context.Context) error {
	conn, err := grpc.NewClient("passthrough:///"+s.addr, append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	config := &leaseholdv1.NamespaceConfig{Name: namespace, Policy: "static"}
	for i := range uint64(2 * ranges) { // every second one is nobody's, or they would be one
		slot := &leaseholdv1.StaticSlot{Start: i << 57}
		if i%2 == 0 {
			slot.Owner = "o"
		}
		config.Static = append(config.Static, slot)
	}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for { // until it leads
		_, err := leaseholdv1.NewAdminServiceClient(conn).CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: config})
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

// Obey lets the owner join or leave, and says when the change that this makes was
// handed to the store. How long a manager waits for other owners before it makes a
// change, so as to make few, is not part of its way to lookups.
func (s *managerMember) Obey(ctx context.Context, o cast.Order) (cast.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch {
	case o.Do == orderChange && s.owner == nil:
		joined, err := owner.Join(ctx, owner.Config{Namespace: namespace, Managers: []string{s.addr}, Name: "o", Addr: "10.0.0.1:80"})
		if err != nil {
			return cast.Answer{}, err
		}
		s.owner = joined
		return s.await(ctx)
	case o.Do == orderUndo && s.owner != nil:
		err := s.owner.Close(ctx)
		s.owner = nil
		if err != nil {
			return cast.Answer{}, err
		}
		return s.await(ctx)
	}
	return cast.Answer{}, cast.UnknownOrder(o)
}

// await waits until all ranges have changed in one batch.
func (s *managerMember) await(ctx context.Context) (cast.Answer, error) {
	select {
	case w := <-s.written:
		if w.changes != ranges {
			return cast.Answer{}, fmt.Errorf("%d ranges have changed at a time, and %d should have", w.changes, ranges)
		}
		return cast.Answer{Begin: w.begin.UnixNano(), Number: w.number}, nil
	case <-ctx.Done():
		return cast.Answer{}, fmt.Errorf("the table has not changed: %w", ctx.Err())
	}
}

func (s *managerMember) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), cast.EndLimit/2)
	defer cancel()
	if s.owner != nil {
		_ = s.owner.Close(ctx)
	}
	return s.m.Close(ctx)
}

// written is a batch that was handed to the store.
type written struct {
	begin   time.Time
	number  uint64 // of its last change
	changes int
}

// timed tells of batches.
type timed struct {
	store.Store
	written chan<- written
}

func (t timed) Append(ctx context.Context, b *storage.Batch) (storage.Outcome, error) {
	begin := time.Now()
	outcome, err := t.Store.Append(ctx, b)
	if err == nil && outcome == storage.Done {
		t.written <- written{begin, uint64(b.Last()), len(b.Changes)}
	}
	return outcome, err
}
